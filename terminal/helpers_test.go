package terminal_test

import (
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

// open opens a registry of the test's own, which is closed at its end.
func open(t testing.TB, opts *terminal.Options) *terminal.Registry {
	t.Helper()
	return openIn(t, filepath.Join(t.TempDir(), "terminals"), opts)
}

func openIn(t testing.TB, dir string, opts *terminal.Options) *terminal.Registry {
	t.Helper()
	r, err := terminal.Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func start(t testing.TB, r *terminal.Registry, argv ...string) *terminal.Terminal {
	t.Helper()
	return startSpec(t, r, terminal.Spec{Argv: argv})
}

func startSpec(t testing.TB, r *terminal.Registry, spec terminal.Spec) *terminal.Terminal {
	t.Helper()
	term, err := r.Start(testenv.Context(t), spec)
	require.NoError(t, err)
	return term
}

// bash starts an interactive bash with a prompt that is known, and waits for it.
func bash(t testing.TB, r *terminal.Registry) *terminal.Terminal {
	t.Helper()
	term := startSpec(t, r, bashSpec())
	see(t, term, `(?m)^> $`)
	return term
}

func bashSpec() terminal.Spec {
	return terminal.Spec{
		Argv: []string{"bash", "--noprofile", "--norc"},
		Env:  []string{"PS1=> ", "HISTFILE=", "PROMPT_COMMAND=", "BASH_SILENCE_DEPRECATION_WARNING=1"},
	}
}

// wait waits for what the options say, and for nothing else.
func wait(t testing.TB, term *terminal.Terminal, o terminal.WaitOptions) terminal.Waited {
	t.Helper()
	o.Timeout = testenv.Patience
	w, err := term.Wait(testenv.Context(t), o)
	require.NoError(t, err)
	if w.Reason == terminal.WaitTimeout || w.Reason == terminal.WaitExited && (o.Pattern != "" || o.Text != "") {
		s, err := term.Screen()
		require.NoError(t, err)
		t.Fatalf("waited for %+v, and it %s (%+v); on the screen is:\n%s", o, w.Reason, w.Info, s.Text())
	}
	return w
}

// see waits until a pattern is on the screen, and returns the screen. Blanks at the ends
// of lines are not in its text.
func see(t testing.TB, term *terminal.Terminal, pattern string) terminal.Snapshot {
	t.Helper()
	pattern = regexp.MustCompile(` \$$`).ReplaceAllString(pattern, "$$")
	wait(t, term, terminal.WaitOptions{Pattern: pattern})
	s, err := term.Screen()
	require.NoError(t, err)
	return s
}

// send types what keys.Parse makes of the arguments.
func send(t testing.TB, term *terminal.Terminal, args ...string) {
	t.Helper()
	inputs, err := keys.Parse(args...)
	require.NoError(t, err)
	require.NoError(t, term.Send(inputs...))
}

// ended waits for the end of the program.
func ended(t testing.TB, term *terminal.Terminal) terminal.Info {
	t.Helper()
	wait(t, term, terminal.WaitOptions{})
	select {
	case <-term.Done():
	case <-testenv.Context(t).Done():
		t.Fatal("it does not end")
	}
	return term.Info()
}

// output is what is kept of the output.
func output(t testing.TB, term *terminal.Terminal) string {
	t.Helper()
	c, err := term.Output(0, 1<<30)
	require.NoError(t, err)
	return string(c.Data)
}
