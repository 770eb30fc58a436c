package sandbox

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/transport"
)

// Explain says what would run under the policy in the directory, argument by
// argument, and why. Each line is "ARGUMENTS  # WHY". Descriptors and the session's
// directory have made-up names, and of the environment there is what the policy adds.
// It starts nothing; the error is that of [New]. The directory is the workspace if it
// is empty.
func Explain(p Policy, dir string) ([]string, error) {
	r, err := p.resolve()
	if err != nil {
		return nil, err
	}
	if r.unconfined != "" {
		return []string{"no sandbox  # " + r.unconfined}, nil
	}
	h, err := lookAtHost(p.user())
	if err != nil {
		return nil, &Error{Code: ErrMount, Detail: "looking at the host: " + err.Error()}
	}
	if dir == "" {
		dir = r.FS.Workspace
	}
	lines := []string{"bwrap"}
	if p.user() != ourselves() {
		lines[0] += "  # as " + userText(p.user()) + ", by RunAs"
	}
	why := ""
	add := func(i item) {
		if i.why != "" {
			why = i.why // What has none goes with what is before it.
		}
		lines = append(lines, "  "+strings.Join(quoted(i.args), " ")+"  # "+why)
	}
	add(item{"no system calls for: " + seccompSummary(r), []string{"--seccomp", "FD"}})
	add(item{"how the program has ended", []string{"--json-status-fd", "FD"}})
	if limits := limitsText(r.Limits); limits != "" {
		add(item{"it waits until its limits are set: " + limits, []string{"--block-fd", "FD"}})
	}
	reason := "of the environment, besides what Env passes on"
	for _, entry := range environ(r, h, transport.Spec{}) {
		name, _, _ := strings.Cut(entry, "=")
		if i := slices.IndexFunc(retries, func(r retry) bool { return r.name == name }); i >= 0 && slices.Contains(r.Net.impatient(), entry) {
			add(item{retries[i].why, setenv([]string{entry})})
			continue
		}
		add(item{reason, setenv([]string{entry})})
		reason = "" // It is that of what follows, too.
	}
	for _, i := range plan(r, h, place{dir: dir, sessionDir: "/SESSION"}) {
		add(i)
	}
	if r.Net.Mode == DomainsNet {
		return append(lines, "  -- "+strings.Join([]string{helperPath, helperListen, "FD"}, " ")+" bash ...  # opens the port of the proxy, and becomes bash"), nil
	}
	return append(lines, "  -- bash ..."), nil
}

func limitsText(l Limits) string {
	var texts []string
	for _, one := range limitsOf(&Policy{Limits: l}) {
		if *one.limit > 0 {
			texts = append(texts, fmt.Sprintf("%s %d", one.field, *one.limit))
		}
	}
	return strings.Join(texts, ", ")
}

func seccompSummary(p Policy) string {
	parts := []string{"mounts", "kernel interfaces that a shell has no use for"}
	if !p.Proc.AllowPtrace {
		parts = append(parts, "tracing")
	}
	if p.Net.Unix == UnixBlocked {
		parts = append(parts, "Unix sockets")
	}
	return strings.Join(parts, ", ")
}

// quoted makes arguments that can be told apart.
func quoted(args []string) []string {
	args = slices.Clone(args)
	for i, arg := range args {
		if arg == "" || strings.ContainsAny(arg, " \t\n'\"\\#") {
			args[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return args
}
