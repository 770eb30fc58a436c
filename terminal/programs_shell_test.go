package terminal_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

func TestBashHasJobControl(t *testing.T) { jobControl(t, bash(t, open(t, nil))) }

// jobControl stops, continues and ends programs in a bash, as whoever types does.
func jobControl(t *testing.T, term *terminal.Terminal) {
	t.Helper()
	testenv.NeedProc(t) // To know who is in the foreground.
	send(t, term, "case $- in *m*) echo on its own;; esac", "Enter")
	see(t, term, `(?m)^on its own\n> $`)
	send(t, term, "sleep 1000", "Enter")
	foreground(t, term, "sleep")
	send(t, term, "Ctrl-Z")
	see(t, term, `\[1\]\+ +Stopped +sleep 1000\n> $`)

	send(t, term, "cat", "Enter")
	foreground(t, term, "cat")
	send(t, term, "typed", "Enter")
	see(t, term, `cat\ntyped\ntyped$`)
	send(t, term, "Ctrl-Z")
	see(t, term, `\[2\]\+ +Stopped +cat\n> $`)

	send(t, term, "jobs", "Enter")
	see(t, term, `\[1\]- +Stopped +sleep 1000\n\[2\]\+ +Stopped +cat\n> $`)
	send(t, term, "bg %1", "Enter")
	see(t, term, `\[1\]- sleep 1000 &\n> $`)
	send(t, term, "jobs -r", "Enter")
	see(t, term, `\[1\]- +Running +sleep 1000 &\n> $`)

	send(t, term, "fg %2", "Enter")
	foreground(t, term, "cat")
	send(t, term, "typed again", "Enter", "Ctrl-D")
	see(t, term, `typed again\ntyped again\n> $`)
	send(t, term, "fg", "Enter")
	foreground(t, term, "sleep")
	send(t, term, "Ctrl-C")
	see(t, term, `\^C\n> $`)
	send(t, term, "echo $?", "Enter")
	see(t, term, `(?m)^130\n> $`)

	send(t, term, "sleep 1001 &", "Enter")
	see(t, term, `\[1\] \d+\n> $`)
	send(t, term, "kill %1; wait %1; echo $?", "Enter")
	see(t, term, `(?s)kill.*Terminated +sleep 1001.*143`)
	send(t, term, "jobs; echo none", "Enter")
	see(t, term, `jobs; echo none\nnone\n> $`)
}

func TestCtrlDEndsTheShellWithItsLastStatus(t *testing.T) {
	r := open(t, nil)
	for _, test := range []struct {
		line string
		exit terminal.Exit
	}{
		{"true", terminal.Exit{}},
		{"(exit 7)", terminal.Exit{Code: 7}},
		{"bash -c 'kill -KILL $$'", terminal.Exit{Code: 128 + int(syscall.SIGKILL)}}, // Which the shell lives to tell.
	} {
		term := bash(t, r)
		send(t, term, test.line, "Enter")
		see(t, term, `(?s)> .*\n> $`)
		send(t, term, "Ctrl-D")
		info := ended(t, term)
		require.NotNil(t, info.Exit)
		assert.Equal(t, test.exit, *info.Exit, test.line)
	}
}

func TestHistoryAndLineEditingAreThoseOfBash(t *testing.T) {
	term := bash(t, open(t, nil))
	send(t, term, "echo one", "Enter")
	see(t, term, `(?m)^one\n> $`)
	send(t, term, "echo two", "Enter")
	see(t, term, `(?m)^two\n> $`)
	send(t, term, "Up", "Up")
	see(t, term, `> echo one$`)
	send(t, term, "Left", "Left", "Left", "Backspace", "-", "Home", "Delete", "E", "End", "!", "Ctrl-A", "x=")
	see(t, term, `> x=Echo-one!$`)
	send(t, term, "Enter")
	see(t, term, `> x=Echo-one!\n> $`)
	send(t, term, "echo $x", "Enter")
	see(t, term, `(?m)^Echo-one!\n> $`)
	send(t, term, "Ctrl-R", "two")
	see(t, term, `reverse-i-search.*echo two$`)
	send(t, term, "Enter")
	see(t, term, `> echo two\ntwo\n> $`)
}

func TestAPasteOfSeveralLinesRunsNothingBeforeEnter(t *testing.T) {
	r, dir := desk(t)
	file := filepath.Join(dir, "ran")
	term := bash(t, r)
	s, err := term.Screen()
	require.NoError(t, err)
	require.True(t, s.Modes.BracketedPaste, "bash asks for marks at its prompt, from 5.1 on")
	require.NoError(t, term.Send(keys.Paste("echo one >>ran\necho two >>ran\necho three >>ran\n")))
	s = see(t, term, `^> echo one >>ran\necho two >>ran\necho three >>ran$`)
	assert.NoFileExists(t, file, "a line was run")
	send(t, term, "Enter")
	see(t, term, `\n> $`)
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\nthree\n", string(b))
	assert.NotContains(t, s.Text(), "[200~")
}

// Bash's own screen is the normal one: what leaves it at its top is the scrollback.
func TestLongOutputOfAShellIsItsScrollback(t *testing.T) {
	term := bash(t, open(t, nil))
	send(t, term, "seq 100", "Enter")
	see(t, term, `(?m)^99\n100\n> $`)
	list, err := term.Scrollback()
	require.NoError(t, err)
	require.Len(t, list, 102-24)
	assert.Equal(t, []string{"> seq 100", "1", "2"}, list[:3])
	s, err := term.Screen()
	require.NoError(t, err)
	assert.Equal(t, "79\n80", strings.Join([]string{s.Line(1), s.Line(2)}, "\n"))
}

func TestCtrlCGoesToTheInnermostOfNestedShells(t *testing.T) {
	testenv.NeedProc(t) // To know who is in the foreground.
	term := bash(t, open(t, nil))
	send(t, term, "PS1='inner> ' bash --noprofile --norc -i", "Enter")
	see(t, term, `\ninner> $`)
	send(t, term, "sleep 1000; echo not after", "Enter")
	foreground(t, term, "sleep")
	send(t, term, "Ctrl-C")
	see(t, term, `\^C\ninner> $`)
	send(t, term, "exit 9", "Enter")
	see(t, term, `exit\n> $`)
	send(t, term, "echo $?", "Enter")
	s := see(t, term, `(?m)^9\n> $`)
	assert.NotRegexp(t, `(?m)^not after`, s.Text())
}
