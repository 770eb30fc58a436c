package sandbox

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Transport starts processes of this machine under a policy. It is safe for
// concurrent use. Each process has a sandbox of its own: what one writes to a
// private /tmp or home, another does not see.
type Transport struct {
	policy Policy

	// Violations is told of what was made although it is protected: see
	// [MissingTripwire]. A shell is told by an error too, but for what its last
	// command did; a one-shot command is not. Set it before
	// the first Start. It is called by the goroutine that runs the next command,
	// or closes a shell, or by the shell's own when it is idle after a command, and
	// must call back neither.
	Violations func(Violation)

	// Denied is told of hosts that Net.Allow did not allow, and why. Set it
	// before the first Start. It is called by several goroutines at once, as
	// often as the sandbox tries, and may not close what it is told about.
	Denied func(host string, port uint16, why string)
}

var (
	_ transport.Transport    = (*Transport)(nil)
	_ transport.UserSwitcher = (*Transport)(nil)
	_ transport.Shielder     = (*Transport)(nil)
)

// New returns a transport for the policy. It starts nothing, but refuses a
// policy that cannot be right: the error is an [*Error]. What is there of the
// files is looked at anew for each Start, but where symlinks lead is decided
// here: if there is one more in a path later, Start fails.
func New(p Policy) (*Transport, error) {
	if _, err := p.resolve(); err != nil {
		return nil, err
	}
	p, err := p.settle()
	if err != nil {
		return nil, err
	}
	return &Transport{policy: p}, nil
}

// User implements [transport.UserSwitcher]: it is the policy's RunAs, but nil if that
// is this program's user.
func (t *Transport) User() *transport.Credential {
	if t == nil || t.policy.user() == ourselves() {
		return nil
	}
	who := t.policy.user()
	return &who
}

// Shield implements [transport.Shielder]. The error is an [*Error], ErrProtect, for a
// directory that the policy shows, or in which it shows something. Without a policy that
// is nothing.
func (t *Transport) Shield(dir string) error {
	if t == nil || t.policy.unconfined != "" {
		return nil
	}
	p, err := t.policy.absolute()
	if err != nil {
		return err
	}
	h, err := lookAtHost(p.user())
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	var links []string // By one that the sandbox can replace it is led elsewhere.
	if err == nil {
		links, err = linksOn(dir)
	}
	if err != nil {
		return &Error{Code: ErrProtect, Detail: fmt.Sprintf("the state directory %s cannot be protected: %v", dir, err)}
	}
	return mountsOf(p, h, place{}).view.keeps(append(links, dir, realPath(dir))...)
}

// StartTimeout bounds the start of a sandbox. It takes some milliseconds.
const StartTimeout = 5 * time.Second

// Start implements [transport.Transport]. Errors are [*Error]; then nothing
// ran. ctx bounds the start, which takes 5 seconds at most.
func (t *Transport) Start(ctx context.Context, spec transport.Spec) (transport.Conn, error) {
	if t == nil {
		return nil, &Error{Code: ErrNoPolicy, Detail: "there is no policy", Hint: "make the transport with New"}
	}
	p, err := t.policy.resolve()
	if err != nil {
		return nil, err
	}
	if p.unconfined != "" {
		return local.Transport{}.Start(ctx, spec)
	}
	if err := p.usable(spec); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, StartTimeout, &Error{
		Code: ErrStartTimeout, Detail: "the sandbox did not start in " + StartTimeout.String(),
	})
	defer cancel()
	return t.launch(ctx, p, spec)
}

// always are variables that a sandbox gets, as far as the process has them:
// they say who and where one is, and keep programs from asking.
var always = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TZ", "SHELL", "PWD", "OLDPWD",
	"PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_TERMINAL_PROMPT",
}

// alwaysPrefixes are the same for families of them.
var alwaysPrefixes = []string{"LC_"}

// environ is the environment of the process. Bwrap itself has none: a variable like
// LD_PRELOAD, of the sandbox's, of its policy's or of the host's, would run outside
// in bwrap, which also is the first process inside, whose environment can be read
// there. And by what Own has the processes of a session are known, of which bwrap is
// none.
func environ(p Policy, h host, spec transport.Spec) []string {
	var env []string
	for _, entry := range spec.Env {
		name, value, _ := strings.Cut(entry, "=")
		_, set := p.Env.Set[name]
		if set || !slices.Contains(always, name) && !slices.Contains(p.Env.Pass, name) &&
			!slices.ContainsFunc(alwaysPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) {
			continue
		}
		if name == "HOME" && realPath(value) == h.home && h.home != "" {
			entry = "HOME=" + h.home // There are no symlinks to it inside.
		}
		env = append(env, entry)
	}
	if p.FS.Home != ReadOnlyHome {
		env = append(env, "TMPDIR=/tmp")
	}
	if p.Net.Mode == DomainsNet {
		env = append(env, proxied...)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Env.Set)) {
		env = append(env, name+"="+p.Env.Set[name])
	}
	env = append(env, spec.Own...)
	// What somebody has set stays, in capitals or not: npm takes both.
	return append(slices.DeleteFunc(p.Net.impatient(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(env, func(set string) bool {
			set, _, _ = strings.Cut(set, "=")
			return strings.EqualFold(set, name)
		})
	}), env...)
}

// Environ returns the environment of a process that is started with env: what the sandbox lets through of it, and what it sets by itself. It is nil under a
// policy that does not start, and env itself for Unconfined.
func (p Policy) Environ(env []string) []string {
	if p.unconfined != "" {
		return env
	}
	r, err := p.resolver()
	if err != nil {
		return nil
	}
	return environ(r.p, host{home: userHome()}, transport.Spec{Env: env})
}

// setenv are the arguments for bwrap by which the process has the environment. They
// are handed over in memory, where nobody else reads them.
func setenv(env []string) []string {
	var args []string
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		args = append(args, "--setenv", name, value)
	}
	return args
}
