package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"
)

const (
	ctrlC         = "\x03"
	ctrlD         = "\x04"
	ctrlBackslash = "\x1c"
	ctrlZ         = "\x1a"
	arrowUp       = "\x1b[A"
)

// seat is a terminal with limpet on it, and a user in front of it.
type seat struct {
	t        *testing.T
	user     *os.File // what the user types into and reads from
	tty      *os.File // limpet's side
	cmd      *exec.Cmd
	ended    chan error
	shown    chan string // closed when the terminal is gone
	seen     string      // all of it, up to what sees waited for
	unread   string
	modeThen *term.State
}

// onTerminal starts limpet, with home as its directory and its HOME: the
// prompt there is "~ $ ".
func onTerminal(t *testing.T, home, termName string, args ...string) *seat {
	t.Helper()
	return programOnTerminal(t, home, termName, "limpet", args...)
}

func programOnTerminal(t *testing.T, home, termName, program string, args ...string) *seat {
	t.Helper()
	user, tty, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(user, &pty.Winsize{Rows: 24, Cols: 80}))
	mode, err := term.GetState(int(tty.Fd()))
	require.NoError(t, err)
	cmd := exec.Command(program, args...)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "HOME="+home, "TERM="+termName)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	tm := &seat{
		t: t, user: user, tty: tty, cmd: cmd, modeThen: mode,
		ended: make(chan error, 1), shown: make(chan string),
	}
	over, reading := make(chan struct{}), make(chan struct{})
	go func() { tm.ended <- cmd.Wait() }()
	go func() {
		defer close(reading)
		tm.read(over)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It has ended, unless the test failed.
		close(over)
		_ = tty.Close()
		_ = user.Close() // A test may have hung up.
		<-reading
	})
	return tm
}

func (tm *seat) read(over <-chan struct{}) {
	defer close(tm.shown)
	buf := make([]byte, 4096)
	for {
		n, err := tm.user.Read(buf)
		if err != nil {
			return // Linux says EIO when nobody has the terminal open any more.
		}
		select {
		case tm.shown <- string(buf[:n]):
		case <-over:
			return
		}
	}
}

func (tm *seat) types(keys string) {
	tm.t.Helper()
	_, err := tm.user.WriteString(keys)
	require.NoError(tm.t, err)
}

// sees waits until text is shown, after what was seen before.
func (tm *seat) sees(text string) {
	tm.t.Helper()
	late := time.After(patience)
	for {
		if before, rest, ok := strings.Cut(tm.unread, text); ok {
			tm.seen += before + text
			tm.unread = rest
			return
		}
		select {
		case more, ok := <-tm.shown:
			if !ok {
				tm.t.Fatalf("the terminal is gone; want %q in %q", text, tm.unread)
			}
			tm.unread += more
		case <-late:
			tm.t.Fatalf("want %q in %q", text, tm.unread)
		}
	}
}

// exits waits until limpet ends, with this code.
func (tm *seat) exits(code int) {
	tm.t.Helper()
	late := time.After(patience)
	for {
		select {
		case err := <-tm.ended:
			if err != nil {
				_, ok := errors.AsType[*exec.ExitError](err)
				require.True(tm.t, ok, "%v", err)
			}
			require.Equal(tm.t, code, tm.cmd.ProcessState.ExitCode())
			return
		case more := <-tm.shown: // Nobody shall wait until there is room to write.
			tm.unread += more
		case <-late:
			tm.t.Fatalf("limpet does not end; unread is %q", tm.unread)
		}
	}
}

// isAsBefore checks that limpet gave the terminal back as it was.
func (tm *seat) isAsBefore() {
	tm.t.Helper()
	mode, err := term.GetState(int(tm.tty.Fd()))
	require.NoError(tm.t, err)
	require.Equal(tm.t, tm.modeThen, mode)
}

// What runs in a session has no terminal, not even that of the person who started limpet: it fails, where it would
// take what the person types, or wait for it.
func TestWhatReadsTheTerminalInASessionFailsAtOnce(t *testing.T) {
	home := t.TempDir()
	for _, args := range [][]string{
		{"run", "{ read -r x </dev/tty; echo code $?; } 2>&1"},
		{"run", "--", "bash", "-c", "{ read -r x </dev/tty; echo code $?; } 2>&1"},
		{"run", "set -e; { (read -r x </dev/tty) || echo code $?; } 2>&1"}, // In a fork, or a bash of its own.
	} {
		tm := onTerminal(t, home, "xterm", args...)
		tm.sees("/dev/tty: No such device or address")
		tm.sees("code 1")
		tm.exits(0)
		tm.isAsBefore()
	}
}
