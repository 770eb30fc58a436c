package sandbox

import (
	"slices"
	"strings"
)

// Explain says what would run under the policy in the directory, argument by
// argument, and why. Each line is "ARGUMENTS  # WHY". It starts nothing; the
// error is that of [New]. The directory is the workspace if it is empty.
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
	why := ""
	for _, i := range plan(r, h, place{dir: dir, sessionDir: "/SESSION"}) {
		if i.why != "" {
			why = i.why // What has none goes with what is before it.
		}
		lines = append(lines, "  "+strings.Join(quoted(i.args), " ")+"  # "+why)
	}
	return append(lines, "  --seccomp FD  # "+seccompSummary(r), "  -- bash ..."), nil
}

func seccompSummary(p Policy) string {
	parts := []string{"no mounts, no kernel interfaces that a shell has no use for"}
	if !p.Proc.AllowPtrace {
		parts = append(parts, "no tracing")
	}
	if p.Net.Unix == UnixBlocked {
		parts = append(parts, "no Unix sockets")
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
