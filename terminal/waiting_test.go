package terminal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// waits returns what a terminal waits for, as soon as it does.
func waits(t *testing.T, term *terminal.Terminal) terminal.Waiting {
	t.Helper()
	var found *terminal.Waiting
	testenv.Await(t, "a program that waits for input", func() bool {
		found = term.Info().Waits
		return found != nil
	})
	assert.NotZero(t, found.PID)
	assert.WithinDuration(t, time.Now(), found.Since, testenv.Patience)
	return *found
}

// A program that waits for a person is known by what it sleeps in and by how the terminal is set, and by nothing
// that it prints.
func TestAProgramThatWaitsForInputIsNoticed(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for name, test := range map[string]struct {
		program string // that must be installed
		spec    terminal.Spec
		want    string
		asks    bool
	}{
		"a line":                {"bash", terminal.Spec{Line: `read -rp 'name? ' x`}, "bash waits for a line of input", true},
		"a line without a word": {"cat", terminal.Spec{Argv: []string{"cat"}}, "cat waits for a line of input", true},
		"a line, of /dev/tty":   {"bash", terminal.Spec{Line: `read -r x </dev/tty`}, "bash waits for a line of input", true},
		"a password":            {"bash", terminal.Spec{Line: `read -rsp 'secret: ' x`}, "bash waits for a password (echo is off)", true},
		"a key":                 {"bash", terminal.Spec{Line: `read -rn 1 x`}, "bash waits for a key", false}, // Of the program itself.
		"python's input":        {"python3", terminal.Spec{Argv: []string{"python3", "-c", `input("name? ")`}}, "python3 waits for a line of input", true},
		"python's getpass":      {"python3", terminal.Spec{Argv: []string{"python3", "-c", `import getpass; getpass.getpass()`}}, "python3 waits for a password (echo is off)", true},
		"a pager":               {"less", terminal.Spec{Argv: []string{"less", "/etc/passwd"}}, "less waits for a key", false},
		"a pager in a pipeline": {"less", terminal.Spec{Line: "seq 1000 | less; :"}, "less waits for a key", true},
		"a thread": {"python3", terminal.Spec{Argv: []string{"python3", "-c", `
import sys, threading, time
t = threading.Thread(target=sys.stdin.readline, daemon=True)
t.start()
time.sleep(1000)`}}, "python3 waits for a line of input", true},
		"poll": {"python3", terminal.Spec{Argv: []string{"python3", "-c", `
import select
p = select.poll()
p.register(0, select.POLLIN)
p.poll()`}}, "python3 waits for a line of input", true},
		"epoll": {"python3", terminal.Spec{Argv: []string{"python3", "-c", `
import select
p = select.epoll()
p.register(0, select.EPOLLIN)
p.poll()`}}, "python3 waits for a line of input", true},
		"select": {"python3", terminal.Spec{Argv: []string{"python3", "-c", `
import select
select.select([0], [], [])`}}, "python3 waits for a line of input", true},
		"a shell":                     {"bash", bashSpec(), "bash is at its prompt", false},
		"a shell without an own edit": {"dash", terminal.Spec{Argv: []string{"dash", "-i"}}, "dash is at its prompt", false},
	} {
		t.Run(name, func(t *testing.T) {
			installed(t, test.program)
			term := startSpec(t, open(t, nil), test.spec)
			assert.Equal(t, test.want, waits(t, term).String())
			info := term.Info()
			if test.asks {
				assert.Equal(t, info.Waits, info.Asks())
			} else {
				assert.Nil(t, info.Asks())
			}
			w := wait(t, term, terminal.WaitOptions{Prompt: true})
			assert.Equal(t, terminal.WaitPrompt, w.Reason, "it ends a wait for a prompt, whatever that looks like")
		})
	}
}

// Each has been silent for long enough to be looked at.
func TestAProgramThatGoesOnByItselfIsNotTakenForOneThatWaits(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for name, test := range map[string]struct {
		program string
		spec    terminal.Spec
	}{
		"sleep":             {"bash", terminal.Spec{Argv: []string{"sleep", "1000"}}},
		"a busy loop":       {"bash", terminal.Spec{Line: "while :; do :; done"}},
		"another file":      {"bash", terminal.Spec{Line: "mkfifo fifo; read -r x <>fifo", Dir: t.TempDir()}},
		"in the background": {"bash", terminal.Spec{Line: "set -m; bash -c 'read -r x' </dev/tty & sleep 1000"}},
		"a limit in time": {"python3", terminal.Spec{Argv: []string{"python3", "-c", `
import select
select.select([0], [], [], 1000)`}}},
		"something else as well": {"python3", terminal.Spec{Argv: []string{"python3", "-c", `
import os, select
r, w = os.pipe()
p = select.poll()
p.register(0, select.POLLIN)
p.register(r, select.POLLIN)
p.poll()`}}},
		"no echo, and no reader": {"bash", terminal.Spec{Line: "stty -echo; sleep 1000"}},
	} {
		t.Run(name, func(t *testing.T) {
			installed(t, test.program)
			term := startSpec(t, open(t, nil), test.spec)
			wait(t, term, terminal.WaitOptions{Silence: 400 * time.Millisecond})
			assert.Nil(t, term.Info().Waits)
		})
	}
	t.Run("one that prints", func(t *testing.T) {
		term := startSpec(t, open(t, nil), terminal.Spec{Line: "while :; do echo line; sleep 0.01; done"})
		see(t, term, "(?s)(line.*){5}")
		assert.Nil(t, term.Info().Waits)
	})
}

// A person at a shell is asked by what the shell runs, and not by its prompt.
func TestWhatAShellRunsMayAsk(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	term := bash(t, open(t, nil))
	assert.Equal(t, terminal.ForCommand, waits(t, term).For)
	send(t, term, "read -r x", "Enter")
	testenv.Await(t, "the line", func() bool { w := term.Info().Asks(); return w != nil && w.For == terminal.ForLine })
	send(t, term, "some text", "Enter")
	testenv.Await(t, "the prompt", func() bool { w := term.Info().Waits; return w != nil && w.For == terminal.ForCommand })
	assert.Nil(t, term.Info().Asks())
	installed(t, "less")
	send(t, term, "less /etc/passwd", "Enter")
	testenv.Await(t, "the pager", func() bool { w := term.Info().Asks(); return w != nil && w.For == terminal.ForKey })
	assert.Equal(t, "less", term.Info().Asks().Program)
	send(t, term, "q")
	testenv.Await(t, "the prompt", func() bool { w := term.Info().Waits; return w != nil && w.For == terminal.ForCommand })
}

// One that begins to read without a word is noticed when somebody asks.
func TestWhatIsReadAfterASilenceIsNoticed(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := t.TempDir()
	term := startSpec(t, open(t, nil), terminal.Spec{Line: "until [[ -e go ]]; do sleep 0.05; done; read -r x", Dir: dir})
	wait(t, term, terminal.WaitOptions{Silence: 400 * time.Millisecond})
	assert.Nil(t, term.Info().Waits)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	assert.Equal(t, terminal.ForLine, waits(t, term).For)
}

// vim looks whether there is something to do for four seconds, and waits for a key alone after that.
func TestAnEditorWaitsForKeys(t *testing.T) {
	testenv.NeedProc(t)
	testenv.Slow(t)
	installed(t, "vim")
	term := start(t, open(t, nil), "vim", "-u", "NONE", "-i", "NONE", "-n")
	w := waits(t, term)
	assert.Equal(t, terminal.ForKey, w.For)
	assert.Nil(t, term.Info().Asks(), "it is what the terminal is for")
}

// What ends is asked nothing any more.
func TestATerminalThatHasEndedWaitsForNothing(t *testing.T) {
	testenv.NeedProc(t)
	term := startSpec(t, open(t, nil), terminal.Spec{Line: "read -r x"})
	waits(t, term)
	send(t, term, "Enter")
	assert.Nil(t, ended(t, term).Waits)
	require.Nil(t, term.Info().Asks())
}
