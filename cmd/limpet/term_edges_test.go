package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// code runs limpet term, and returns its exit code with what it has printed.
func (ts *terms) code(args ...string) (int, string) {
	ts.t.Helper()
	cmd := exec.Command("limpet", ts.args(args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.IsType(ts.t, &exec.ExitError{}, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

func TestWhatWasTypedBeforeTheDetachKeyArrives(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	id := ts.start(prompting)
	ts.limpet("wait", "--prompt", "--timeout", "1m", id)
	for i := range 20 {
		tm := ts.sit(id)
		tm.sees("\x1b[m") // It is painted.
		tm.types(fmt.Sprintf("echo $((%d + 5000))\r", i) + ctrlBackslash)
		tm.exits(0)
		ts.limpet("wait", "--text", fmt.Sprint(i+5000), "--timeout", "1m", id)
	}
}

func TestKeysThatEndTheProgramGiveItsExitCode(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	for range 5 {
		id := ts.start(prompting)
		ts.limpet("wait", "--prompt", "--timeout", "1m", id)
		code, out := ts.code("send", "--wait-prompt", id, "exit 3", "Enter")
		assert.Equal(t, 3, code, out)
		assert.Contains(t, out, "> exit 3")
	}
}

func TestATerminalIsNotAttachedToItself(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	id := ts.start(prompting)
	ts.limpet("wait", "--prompt", "--timeout", "1m", id)
	line := strings.Join(append([]string{"limpet"}, ts.args("attach", "$LIMPET_TERMINAL")...), " ")
	ts.limpet("send", "--wait", "it would show itself to itself", "--timeout", "1m", id, line, "Enter")
}

func TestAttachGoesOnWhereAShellHasStoppedIt(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	id := ts.start(prompting)
	ts.limpet("wait", "--prompt", "--timeout", "1m", id)
	tm := ts.sit(id)
	tm.sees(prompted)
	require.NoError(t, tm.cmd.Process.Signal(syscall.SIGSTOP))
	raw, err := term.GetState(int(tm.tty.Fd()))
	require.NoError(t, err)
	require.NoError(t, term.Restore(int(tm.tty.Fd()), tm.modeThen)) // As a shell sets it.
	require.NoError(t, tm.cmd.Process.Signal(syscall.SIGCONT))
	require.Eventually(t, func() bool {
		now, err := term.GetState(int(tm.tty.Fd()))
		return err == nil && assert.ObjectsAreEqual(raw, now)
	}, patience, time.Millisecond)
	tm.sees("\x1b[2J") // It is painted anew.
	tm.types("echo $((6 * 7))\r")
	tm.sees("42\r\n")
	tm.types(ctrlBackslash)
	tm.exits(0)
}

func TestAttachEndsThoughItsTerminalTakesNothing(t *testing.T) {
	ts := newTerms(t)
	id := ts.start("read -r x; yes")
	master, slave, err := pty.Open()
	require.NoError(t, err)
	defer master.Close()
	defer slave.Close()
	cmd := exec.Command("limpet", ts.args("attach", id)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.Env = append(os.Environ(), "TERM=xterm")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	before, err := term.GetState(int(slave.Fd()))
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = master.WriteString("\r")
	require.NoError(t, err)
	ts.limpet("wait", "--text", "y", "--timeout", "1m", id)
	_, err = master.WriteString(ctrlBackslash)
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		_ = cmd.Process.Kill() // It hangs.
		t.Fatal("it hangs")
	}
	after, err := term.GetState(int(slave.Fd()))
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestARecordingRemovesNothingThatItHasNotMade(t *testing.T) {
	ts := newTerms(t)
	id := ts.start("echo hello")
	ts.limpet("wait", "--timeout", "1m", id)
	link := filepath.Join(ts.home, "link")
	require.NoError(t, os.Symlink("/dev/full", link))
	code, out := ts.code("record", "--force", id, link)
	assert.Equal(t, codeFailed, code, out)
	_, err := os.Lstat(link)
	require.NoError(t, err)
	file := filepath.Join(ts.home, "file")
	require.NoError(t, os.WriteFile(file, []byte("old"), 0o644))
	ts.limpet("record", "--force", id, file)
	st, err := os.Stat(file)
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, st.Mode().Perm())
}

func TestTextOfALogHasNoControls(t *testing.T) {
	ts := newTerms(t)
	id := ts.start(`printf 'A\302\23331mB\302\235 52;c;x\007C\007\033[31mD\016\177\302\237x\n'`)
	ts.limpet("wait", "--timeout", "1m", id)
	out := ts.limpet("log", "--text", id)
	assert.False(t, strings.ContainsFunc(out, func(c rune) bool { return c < ' ' && c != '\n' || c >= 0x7f && c < 0xa0 }), "%q", out)
	assert.Contains(t, out, "CD")
}

// What is looked at needs no directory to stand in.
func TestTerminalsCanBeSeenFromADirectoryThatIsGone(t *testing.T) {
	ts := newTerms(t)
	id := ts.start("exec cat")
	gone := filepath.Join(ts.home, "gone")
	require.NoError(t, os.Mkdir(gone, 0o700))
	args := strings.Join(append([]string{"limpet"}, ts.args("list")...), " ")
	cmd := exec.Command("bash", "-c", "cd "+gone+" && rmdir ../gone && "+args)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), id)
}

func TestAHostWhoseDirectoryIsRemovedEnds(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	id := ts.start("read -r x; echo hello")
	var info terminal.Info
	require.NoError(t, json.Unmarshal([]byte(ts.limpet("info", "--json", id)), &info))
	require.NoError(t, os.RemoveAll(ts.state))
	require.NoError(t, syscall.Kill(info.PID, syscall.SIGKILL))
	assert.Eventually(t, func() bool { return syscall.Kill(info.OwnerPID, 0) != nil }, patience, 10*time.Millisecond)
}

// A host does not go before all is written down.
func TestAHostWaitsForRoomOnTheDisk(t *testing.T) {
	testenv.Slow(t)
	ts := newTerms(t)
	gate := filepath.Join(t.TempDir(), "go")
	id := ts.start("until [[ -e " + gate + " ]]; do sleep 0.01; done; echo hello; exit 5")
	aside := ts.state + ".aside"
	// Its socket is in the directory: another name of that stands in for a full disk, as far
	// as new files go.
	var info terminal.Info
	require.NoError(t, json.Unmarshal([]byte(ts.limpet("info", "--json", id)), &info))
	require.NoError(t, os.Rename(ts.state, aside))
	require.NoError(t, os.WriteFile(gate, nil, 0o600))
	assert.Eventually(t, func() bool { return syscall.Kill(info.PID, 0) != nil }, patience, time.Millisecond)
	assert.Never(t, func() bool { return syscall.Kill(info.OwnerPID, 0) != nil }, 300*time.Millisecond, time.Millisecond, "the host has gone")
	require.NoError(t, os.Rename(aside, ts.state))
	code, out := ts.code("wait", "--timeout", "1m", id)
	assert.Equal(t, 5, code, out)
	assert.Contains(t, ts.limpet("screen", id), "hello")
}
