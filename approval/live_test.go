package approval_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
)

// newShell is what a bash has that has just started.
func newShell() *command.LiveState {
	return &command.LiveState{
		Builtins:  []string{"cd", "echo", "test"},
		Options:   []string{"braceexpand", "hashall", "interactive-comments", "interactive_comments", "sourcepath"},
		Env:       []string{"PATH=/usr/bin:/bin", "HOME=/home/me"},
		Variables: []command.LiveVariable{{Name: "PATH", Attributes: "x", Value: "/usr/bin:/bin"}, {Name: "HOME", Attributes: "x", Value: "/home/me"}, {Name: "IFS", Value: " \t\n"}},
		Libraries: []string{"/usr/bin/bash", "/usr/lib/x86_64-linux-gnu/libc.so.6"},
	}
}

// with is a new shell that has something else, too.
func with(change func(*command.LiveState)) *command.LiveState {
	state := newShell()
	change(state)
	return state
}

func TestWhatTheShellHasAsks(t *testing.T) {
	for name, c := range map[string]struct {
		state  *command.LiveState
		script string
		why    string
	}{
		"a new shell":              {newShell(), "ls | sort; echo {a,b}", ""},
		"another builtin":          {with(func(s *command.LiveState) { s.Builtins = append(s.Builtins, "ls") }), "ls", "ls is a builtin here that was loaded"},
		"a library":                {with(func(s *command.LiveState) { s.Libraries = append(s.Libraries, "/tmp/cd.so") }), "cd /", "the shell has loaded /tmp/cd.so, which may be new builtins"},
		"a library of bash":        {with(func(s *command.LiveState) { s.Libraries = append(s.Libraries, "/usr/lib/bash/cd") }), "cd /", "the shell has loaded /usr/lib/bash/cd, which may be new builtins"},
		"a function within a text": {with(func(s *command.LiveState) { s.Functions = []string{"ls"} }), "bash -c 'true && ls'", "ls is a function here"},
		"a function behind env":    {with(func(s *command.LiveState) { s.Functions = []string{"ls"} }), "env ls", "ls is a function here"},
		"a program of the PATH that was changed, without a look at files": {with(func(s *command.LiveState) { s.Variables[0].Value = "/tmp:/usr/bin" }), "ls", "PATH was changed here, or what happens when it has no program: which ls it is cannot be told"},
		"PATH, where no program runs":                                     {with(func(s *command.LiveState) { s.Variables[0].Value = "/tmp:/usr/bin" }), "cd /; echo a", ""},
		"what is exported makes no variable of the script's": {with(func(s *command.LiveState) {
			s.Variables = append(s.Variables, command.LiveVariable{Name: "FOO_X", Attributes: "x", Value: "a"})
		}), "FOO_X=b", "FOO_X is no variable that is known to be harmless: it may change which programs run, or how"},
		"a number of bash's that was unset": {newShell(), "echo $((RANDOM))", "RANDOM was unset here, and is no number any more"},
		"a number of bash's": {with(func(s *command.LiveState) {
			s.Variables = append(s.Variables, command.LiveVariable{Name: "RANDOM", Attributes: "i", Value: "7"})
		}), "echo $((RANDOM))", ""},
		"no environment at all": {with(func(s *command.LiveState) { s.Env = nil }), "ls", "the variable HOME of the shell was changed, which changes how scripts are read"},
		"nothing":               {&command.LiveState{}, "ls", "the option braceexpand of the shell is off, which changes how scripts are read"},
	} {
		j := approval.Judge(c.script, &approval.Options{Live: c.state, Exported: typical.Exported})
		if c.why == "" {
			assert.Equal(t, approval.Allow, j.Verdict, "%s: %v", name, j.Findings)
			continue
		}
		require.Equal(t, approval.Ask, j.Verdict, name)
		reason, _ := approval.Question{Judgement: j}.Why()
		assert.Equal(t, c.why, reason, name)
	}
}

// A state opens nothing: what asks in a new shell asks in every one.
func TestNoWayAroundIsAllowedByAState(t *testing.T) {
	for _, script := range scripts(t, "ways.txt") {
		assert.NotEqual(t, approval.Allow, approval.Judge(script, &approval.Options{Live: newShell(), Exported: typical.Exported}).Verdict, "%q", script)
	}
	for _, script := range scripts(t, "denied.txt") {
		assert.Equal(t, approval.Deny, approval.Judge(script, &approval.Options{Live: with(func(s *command.LiveState) { s.Functions = []string{"rm"} })}).Verdict, "%q", script)
	}
}

// shellOf is what a person's gate looks at.
type shellOf struct {
	state *command.LiveState
	err   error
	looks int
}

func (s *shellOf) look(context.Context) (*command.LiveState, error) {
	s.looks++
	return s.state, s.err
}

// The shell is looked at where it may have changed, and not again for scripts that change nothing.
func TestAGateLooksWhereItMustAndNotMoreOften(t *testing.T) {
	p := &person{answer: approval.Once}
	g := approval.NewGate(p.ask, nil)
	sh := &shellOf{state: newShell()}
	pass := func(script string) error {
		_, err := g.Pass(t.Context(), approval.Question{Script: script, Dir: "/", Look: sh.look})
		return err
	}
	require.NoError(t, pass("ls"))
	require.Zero(t, sh.looks, "nothing has run that may change names")
	require.NoError(t, pass("eval :"))
	sh.looks = 0
	for range 3 {
		require.NoError(t, pass("ls"))
	}
	assert.Equal(t, 1, sh.looks)
	assert.Len(t, p.asked, 1)
	require.NoError(t, pass("source x"))
	sh.state, sh.looks, p.asked = with(func(s *command.LiveState) { s.Functions = []string{"ls"} }), 0, nil
	require.NoError(t, pass("cat a"))
	require.NoError(t, pass("ls"))
	require.Len(t, p.asked, 1)
	assert.False(t, p.asked[0].Changed)
	reason, text := p.asked[0].Why()
	assert.Equal(t, "ls is a function here, since: source x", reason)
	assert.Equal(t, "ls", text)

	p.asked, sh.state = nil, nil
	g.Changed()
	require.NoError(t, pass("cat a"))
	require.Len(t, p.asked, 1, "it cannot be known")
	assert.True(t, p.asked[0].Changed)
	sh.err = errors.New("busy")
	require.ErrorIs(t, pass("cat a"), sh.err)
}

// A look waits for a script that was let pass before and counts only when it begins: the answer behind such a look holds.
func TestAnAnswerIsForWhatTheLookWaitedFor(t *testing.T) {
	p := &person{answer: approval.Once}
	g := approval.NewGate(p.ask, nil)
	first, err := g.Pass(t.Context(), approval.Question{Script: "eval :", Dir: "/"})
	require.NoError(t, err)
	p.asked = nil
	looks := 0
	second, err := g.Pass(t.Context(), approval.Question{Script: "ls", Dir: "/", Look: func(context.Context) (*command.LiveState, error) {
		if looks++; looks == 1 {
			assert.True(t, first.Holds("/"))
		}
		return with(func(s *command.LiveState) { s.Functions = []string{"ls"} }), nil
	}})
	require.NoError(t, err)
	assert.Equal(t, 2, looks)
	assert.Len(t, p.asked, 1)
	assert.True(t, second.Holds("/"))

	looks = 0
	third, err := g.Pass(t.Context(), approval.Question{Script: "ls", Dir: "/", Look: func(context.Context) (*command.LiveState, error) {
		looks++
		g.Changed()
		return newShell(), nil
	}})
	require.NoError(t, err)
	assert.Less(t, looks, 10, "it ends, though the shell always changes")
	assert.False(t, third.Holds("/"))
}
