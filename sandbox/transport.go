package sandbox

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Transport starts processes of this machine under a policy. It is safe for
// concurrent use. Each process has a sandbox of its own: what one writes to
// /tmp or to the private home, another does not see.
type Transport struct {
	policy Policy
}

var _ transport.Transport = (*Transport)(nil)

// New returns a transport for the policy. It starts nothing, but refuses a
// policy that cannot be right: the error is an [*Error].
func New(p Policy) (*Transport, error) {
	if _, err := p.resolve(); err != nil {
		return nil, err
	}
	return &Transport{p}, nil
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
	ctx, cancel := context.WithTimeoutCause(ctx, StartTimeout, &Error{
		Code: ErrStartTimeout, Detail: "the sandbox did not start in " + StartTimeout.String(),
	})
	defer cancel()
	return launch(ctx, p, spec)
}

// always are variables that a sandbox gets, as far as the process has them:
// they say who and where one is, and keep programs from asking.
var always = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TERM", "TZ", "SHELL", "PWD", "OLDPWD", "HISTFILE",
	"PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "EDITOR", "VISUAL", "GIT_EDITOR", "GIT_TERMINAL_PROMPT",
}

// alwaysPrefixes are the same for families of them.
var alwaysPrefixes = []string{"LC_", "LIMPET_"}

// environ is the environment inside, made from the one that was asked for.
func environ(p Policy, asked []string) []string {
	var env []string
	for _, entry := range asked {
		name, _, _ := strings.Cut(entry, "=")
		_, set := p.Env.Set[name]
		if !set && (slices.Contains(always, name) || slices.Contains(p.Env.Pass, name) ||
			slices.ContainsFunc(alwaysPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })) {
			env = append(env, entry)
		}
	}
	if p.FS.Home == PrivateHome {
		env = append(env, "TMPDIR=/tmp")
	}
	for name, value := range p.Env.Set {
		env = append(env, name+"="+value)
	}
	return env
}
