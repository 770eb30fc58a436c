package transporttest

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// Session is what a check asks of what it runs commands in. Every session.Handle is one,
// wherever the session is.
type Session interface {
	Do(ctx context.Context, req command.Request) (command.Result, error)
	Interrupt(ctx context.Context) (ran bool, err error)
	Checkpoint(ctx context.Context, name string) error
	Close() error
}

// RunSessions checks the promises in sessions that open makes, each of which nobody has used
// and which Close ends: all promises that do not ask for a shell of this program's. Outside of
// ./test all it checks the core ones. The temp directory and the processes of the sessions must be
// here, too, in whatever namespace.
func RunSessions(t *testing.T, open func(t *testing.T) Session, traits ...Trait) {
	s := suite{open: open, traits: traits}
	for _, p := range promises {
		if !p.ofShells && p.part >= unlessAll(core) {
			t.Run(p.name, func(t *testing.T) { p.run(t, s) })
		}
	}
}

// ofShell makes a shell what a check asks.
type ofShell struct{ *shell.PersistentShell }

func (s ofShell) Interrupt(context.Context) (bool, error) { return true, s.PersistentShell.Interrupt() }

func (s ofShell) Checkpoint(ctx context.Context, _ string) error {
	_, err := s.PersistentShell.Checkpoint(ctx)
	return err
}

// session opens a session and goes to a directory. Of a shell's options it has but the ladder, which each
// request brings.
func (s suite) session(t *testing.T, opts *shell.Options) *sh {
	t.Helper()
	require.Equal(t, &shell.Options{Dir: opts.Dir, Ladder: opts.Ladder}, opts, "these are options of a shell: the promise is one of shells alone")
	x := &sh{Session: s.open(t), t: t, dir: opts.Dir, ladder: opts.Ladder}
	res, err := x.do(command.Request{Script: "cd " + script.Quote(opts.Dir)})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	return x
}

// some leaves out some of what takes long where the core promises alone are checked, and most of it where a session each is a
// process of its own.
func (s suite) some(scripts []string) []string {
	each := 1
	switch {
	case testenv.All():
	case s.open != nil:
		each = 7
	case s.least == core:
		each = 3
	}
	return slices.Collect(func(yield func(string) bool) {
		for i := 0; i < len(scripts) && yield(scripts[i]); i += each {
		}
	})
}

// Do is that of the session, with the ladder that a shell would have.
func (x *sh) Do(ctx context.Context, req command.Request) (command.Result, error) {
	if req.Ladder == nil {
		req.Ladder = x.ladder
	}
	return x.Session.Do(ctx, req)
}

// Run is Do for a script.
func (x *sh) Run(ctx context.Context, script string) (command.Result, error) {
	return x.Do(ctx, command.Request{Script: script})
}

// wantDir checks where a command has left the session.
func (x *sh) wantDir(dir string, res command.Result) {
	x.t.Helper()
	assert.Equal(x.t, dir, res.Dir)
	if sh, ok := x.Session.(ofShell); ok {
		assert.Equal(x.t, dir, sh.Dir())
	}
}
