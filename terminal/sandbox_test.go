package terminal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/terminal"
)

// boxed is a registry whose programs may write only to dir, by default as who runs the test.
func boxed(t *testing.T, dir string, who *sandbox.Credential) *terminal.Registry {
	t.Helper()
	testenv.Slow(t)
	testenv.NeedProc(t)
	if _, err := sandbox.Probe(t.Context()); err != nil {
		t.Skipf("no sandbox is to be had here: %q", err)
	}
	policy := sandbox.WorkspaceWrite(dir)
	policy.RunAs = who
	where, err := sandbox.New(policy)
	require.NoError(t, err)
	return open(t, &terminal.Options{Transport: where, Dir: dir})
}

func TestJobControlWorksInASandbox(t *testing.T) {
	jobControl(t, bash(t, boxed(t, testenv.TempDir(t), nil)))
}

func TestCtrlCInASandboxInterruptsTheForegroundAlone(t *testing.T) {
	term := bash(t, boxed(t, testenv.TempDir(t), nil))
	send(t, term, "sleep 1001 & sleep 1000; echo not after", "Enter")
	foreground(t, term, "sleep")
	send(t, term, "Ctrl-C")
	see(t, term, `\^C\n> $`)
	send(t, term, "echo $?; jobs", "Enter")
	s := see(t, term, `(?m)^130\n\[1\]\+ +Running +sleep 1001 &\n> $`)
	assert.NotRegexp(t, `(?m)^not after`, s.Text())
	require.NoError(t, term.Signal(syscall.SIGINT), "the shell itself is in the foreground")
	send(t, term, "kill %1; exit 4", "Enter")
	assert.Equal(t, 4, ended(t, term).Exit.Code)
}

// The program itself leads the session: there is no shell that a Ctrl-C could leave alive.
func TestCtrlCInASandboxReachesAProgramWithoutAShell(t *testing.T) {
	dir := testenv.TempDir(t)
	r := boxed(t, dir, nil)
	term := startSpec(t, r, terminal.Spec{Argv: []string{"sleep", "1000"}})
	foreground(t, term, "sleep")
	send(t, term, "Ctrl-C")
	info := ended(t, term)
	assert.Equal(t, terminal.Failed, info.State)
	assert.Equal(t, "", strings.Trim(output(t, term), "^C\r\n"), "somebody said something about it")
	interrupted(t, info, syscall.SIGINT)

	installed(t, "python3")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "catch.py"), []byte(`
import time
try:
    print("ready", flush=True)
    time.sleep(1000)
except KeyboardInterrupt:
    print("caught", flush=True)
input("more? ")
raise SystemExit(6)
`), 0o600))
	term = startSpec(t, r, terminal.Spec{Argv: []string{"python3", "catch.py"}})
	if see(t, term, `ready|no such program`); strings.Contains(output(t, term), "no such program") {
		t.Skip("no python3")
	}
	send(t, term, "Ctrl-C")
	see(t, term, `caught\nmore\? $`)
	send(t, term, "yes", "Enter")
	assert.Equal(t, terminal.Exit{Code: 6}, *ended(t, term).Exit)
}

// interrupted asserts that a signal ended the program. Bwrap itself tells of no signal: it
// exits with 128 and its number.
func interrupted(t *testing.T, info terminal.Info, sig syscall.Signal) {
	t.Helper()
	require.NotNil(t, info.Exit)
	assert.True(t, info.Exit.Signal == sig || info.Exit.Code == 128+int(sig), "%v", info.Exit)
}

func TestHowAProgramInASandboxEndedIsTold(t *testing.T) {
	r := boxed(t, testenv.TempDir(t), nil)
	for _, code := range []int{0, 1, 7, 127, 255} {
		info := ended(t, startSpec(t, r, terminal.Spec{Line: fmt.Sprintf("exit %d", code)}))
		assert.Equal(t, terminal.Exit{Code: code}, *info.Exit)
		assert.Equal(t, code == 0, info.State == terminal.Succeeded)
	}
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGSEGV} {
		info := ended(t, startSpec(t, r, terminal.Spec{Line: fmt.Sprintf("kill -%d $$", sig)}))
		interrupted(t, info, sig)
		assert.Equal(t, terminal.Failed, info.State)
	}
	term := startSpec(t, r, terminal.Spec{Argv: []string{"no-such-program", "x"}})
	info := ended(t, term)
	assert.Equal(t, terminal.Exit{Code: 127}, *info.Exit)
	assert.Equal(t, "limpet: no-such-program: there is no such program here\r\n", output(t, term))
}

func TestATerminalInASandboxIsOne(t *testing.T) {
	dir := testenv.TempDir(t)
	outside := filepath.Join(testenv.TempDir(t), "x")
	r := boxed(t, dir, nil)
	// As in TestAResizeIsSeenByTheProgramAndByTheScreen.
	term := startSpec(t, r, terminal.Spec{Line: `trap 'stty size' WINCH; tty; stty size; test -t 0 && test -t 1 && test -t 2 && echo three
		(: </dev/tty) && echo controlling; ls -l /proc/self/fd | grep -c ptmx
		touch inside && echo wrote; touch ` + outside + ` && echo escaped; ls ` + r.Dir() + ` && echo registry
		echo "$TERM"; echo ready; while read -r -t 0.1 x || (($? > 128)); do [[ $x ]] && break; done; echo "read $x"`})
	see(t, term, `(?m)^ready$`)
	require.NoError(t, term.Resize(terminal.Size{Cols: 91, Rows: 31}))
	see(t, term, `(?m)^31 91$`)
	send(t, term, "typed", "Enter")
	ended(t, term)
	text := strings.ReplaceAll(output(t, term), "\r\n", "\n")
	// Bwrap puts the terminal there: what it is called outside is not inside.
	assert.Regexp(t, `^/dev/console\n24 80\nthree\ncontrolling\n0\nwrote\n`, text)
	assert.Contains(t, text, "read typed\n")
	assert.Contains(t, text, "xterm-256color\n")
	assert.Contains(t, text, "touch: cannot touch")
	assert.NotContains(t, text, "escaped")
	assert.NotContains(t, text, "\nregistry\n")
	assert.FileExists(t, filepath.Join(dir, "inside"))
	assert.NoFileExists(t, outside)
}

// A program that could type into its own terminal (TIOCSTI) could type into what reads it
// next. The kernel compares the low 32 bits of a request only.
func TestASandboxCannotTypeIntoItsTerminal(t *testing.T) {
	installed(t, "python3")
	r := boxed(t, testenv.TempDir(t), nil)
	term := startSpec(t, r, terminal.Spec{Line: `type -P python3 >/dev/null || { echo no python3; exit; }
exec python3 -c '
import ctypes, errno, os
libc = ctypes.CDLL(None, use_errno=True)
for request in (0x5412, 0x5412 | 1 << 32):
    failed = libc.ioctl(0, ctypes.c_ulong(request), b"x")
    print(failed, errno.errorcode.get(ctypes.get_errno()))
'`})
	ended(t, term)
	if strings.Contains(output(t, term), "no python3") {
		t.Skip("no python3")
	}
	// EIO would be the kernel's own refusal, where dev.tty.legacy_tiocsti is 0.
	assert.Equal(t, "-1 EPERM\r\n-1 EPERM\r\n", output(t, term))
}

func TestCloseLeavesNothingOfASandbox(t *testing.T) {
	r := boxed(t, testenv.TempDir(t), nil)
	before := wrappers()
	term := bash(t, r)
	send(t, term, `trap '' HUP TERM; (setsid sleep 1000 &); nohup sleep 1001 >/dev/null 2>&1 & sleep 1002`, "Enter")
	foreground(t, term, "sleep")
	testenv.Await(t, "all that is started", func() bool {
		sleeps := 0
		for _, st := range testenv.Marked(r.Mark()) {
			if strings.HasPrefix(proc.Command(st.PID), "sleep ") {
				sleeps++
			}
		}
		return sleeps == 3
	})
	require.Greater(t, wrappers(), before)
	require.NoError(t, term.Close())
	assert.Equal(t, terminal.Cancelled, term.Info().State)
	assert.Empty(t, testenv.Marked(r.Mark()))
	assert.Equal(t, before, wrappers(), "a bwrap is left")
	assert.Zero(t, testenv.Zombies())
}

// wrappers is how many of this program's children are a bwrap.
func wrappers() int {
	n := 0
	for _, st := range testenv.Children() {
		if name, _, _ := strings.Cut(proc.Command(st.PID), " "); filepath.Base(name) == "bwrap" {
			n++
		}
	}
	return n
}

func TestATerminalInASandboxAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	dir := testenv.TempDir(t)
	const uid = 54321
	require.NoError(t, os.Chown(dir, uid, uid))
	testenv.LetPass(t, dir)
	r := boxed(t, dir, &sandbox.Credential{UID: uid, GID: uid})
	term := bash(t, r)
	send(t, term, "id -u; touch mine; (: </dev/tty) && echo controlling", "Enter")
	see(t, term, `(?m)^54321\ncontrolling\n> $`)
	st, err := os.Stat(filepath.Join(dir, "mine"))
	require.NoError(t, err)
	assert.EqualValues(t, uid, st.Sys().(*syscall.Stat_t).Uid)
	jobControl(t, term)
	send(t, term, "trap '' HUP TERM; sleep 1000", "Enter")
	foreground(t, term, "sleep")
	require.NoError(t, term.Close())
	assert.Empty(t, testenv.Marked(r.Mark()))
}

// By the records of terminals a program would say which processes are signalled, and by
// their socket it would type into others.
func TestAProgramThatCouldReachTheRecordsIsRefused(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	where, err := sandbox.New(sandbox.ReadOnly(dir))
	require.NoError(t, err)
	r := openIn(t, filepath.Join(dir, "state"), &terminal.Options{Transport: where, Dir: dir})
	_, err = r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"true"}})
	require.ErrorIs(t, err, sandbox.ErrProtect)
	assert.ErrorContains(t, err, "the state directory "+dir+"/state cannot be protected: FS.Workspace shows it")
}
