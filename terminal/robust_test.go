package terminal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

// Where no descriptor is left to look with, nobody is taken for dead.
func TestALivingProgramIsNotTakenForOneThatIsGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	r := openIn(t, dir, nil)
	term := start(t, r, "cat")
	other := openIn(t, dir, nil)
	lock := filepath.Join(dir, r.Owner()+".lock")
	require.NoError(t, os.Chmod(lock, 0)) // It cannot be looked at, but for root.
	infos, err := other.List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	assert.Equal(t, terminal.Running, infos[0].State)

	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	for extra := range 12 {
		low := before
		low.Cur = uint64(testenv.FDs(t) + extra)
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &low))
		infos, err := other.List()
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before))
		if err == nil && len(infos) == 1 {
			assert.Equal(t, terminal.Running, infos[0].State)
		}
	}
	again, err := other.Get(term.ID())
	require.NoError(t, err)
	assert.Equal(t, terminal.Running, again.Info().State)
	require.NoError(t, term.Close())
	assert.Equal(t, terminal.Cancelled, again.Info().State)
}

func TestAGuardThatWasKilledIsReplaced(t *testing.T) {
	testenv.NeedProc(t)
	r := open(t, nil)
	start(t, r, "cat")
	guards := func() []proc.Stat {
		var found []proc.Stat
		for _, st := range testenv.Children() {
			if !st.Zombie() && strings.Contains(proc.Command(st.PID), "The guard of a limpet program") {
				found = append(found, st)
			}
		}
		return found
	}
	old := guards()
	require.Len(t, old, 1)
	require.NoError(t, proc.Signal(old[0].ID(), syscall.SIGKILL))
	testenv.Await(t, "the guard's end", func() bool { return len(guards()) == 0 })
	start(t, r, "cat")
	assert.Len(t, guards(), 1)
}

// What a program starts without its environment is found by its session, also when the
// leader is gone.
func TestCloseEndsWhatHasNoMark(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for name, script := range map[string]string{
		"it runs":      `(trap '' HUP TERM; exec env -i sleep 4321) & echo $!; wait`,
		"it has ended": `(trap '' HUP TERM; exec env -i sleep 4321) & echo $!; sleep 0.1; exit`,
	} {
		t.Run(name, func(t *testing.T) {
			term := startSpec(t, open(t, nil), terminal.Spec{Line: script})
			wait(t, term, terminal.WaitOptions{Pattern: `(?m)^\d+$`})
			pid := 0
			_, err := fmt.Sscan(output(t, term), &pid)
			require.NoError(t, err)
			testenv.Await(t, "the sleep", func() bool { return strings.Contains(proc.Command(pid), "sleep") })
			if name == "it has ended" {
				ended(t, term)
				require.True(t, testenv.Alive(pid))
			}
			require.NoError(t, term.Close())
			assert.False(t, testenv.Alive(pid))
		})
	}
}

func TestWhatCannotBeWrittenAtTheEndStaysInMemory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	r := openIn(t, dir, &terminal.Options{Grace: 10 * time.Millisecond})
	term := startSpec(t, r, terminal.Spec{Line: "read -r x; echo hello"})
	// Nothing can be written where the directory is a file.
	aside := dir + ".aside"
	require.NoError(t, os.Rename(dir, aside))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	send(t, term, "Enter")
	ended(t, term)
	assert.Equal(t, 1, terminal.InMemory(r))
	require.Never(t, func() bool { return terminal.InMemory(r) != 1 }, 50*time.Millisecond, time.Millisecond, "for some graces")
	assert.Equal(t, terminal.Succeeded, term.Info().State)
	assert.Contains(t, output(t, term), "hello")
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(aside, dir))
	testenv.Await(t, "it to be written down", func() bool { return terminal.InMemory(r) == 0 })
	assert.Contains(t, output(t, term), "hello")
	again, err := r.Get(term.ID())
	require.NoError(t, err)
	assert.Equal(t, terminal.Succeeded, again.Info().State)
}

func TestARegistryThatCannotWriteAnyMoreCanBeClosed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	r, err := terminal.Open(dir, nil)
	require.NoError(t, err)
	running := start(t, r, "cat")
	over := startSpec(t, r, terminal.Spec{Line: "read -r x"})
	require.NoError(t, os.RemoveAll(dir))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	send(t, over, "Enter")
	ended(t, over)
	require.Error(t, over.Save())
	closed := make(chan error)
	go func() { closed <- r.Close() }()
	select {
	case <-closed: // That its lock is not there is an error, or none.
	case <-time.After(testenv.Patience):
		t.Fatal("Close hangs")
	}
	assert.Equal(t, terminal.Cancelled, running.Info().State)
}

func TestWhatIsForgottenIsNotWrittenDownLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	r := openIn(t, dir, &terminal.Options{Grace: 10 * time.Millisecond})
	term := startSpec(t, r, terminal.Spec{Line: "read -r x; echo hello"})
	aside := dir + ".aside"
	require.NoError(t, os.Rename(dir, aside))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	send(t, term, "Enter")
	ended(t, term)
	_ = r.Forget(term.ID()) // Its files cannot be removed, nor seen.
	require.NoError(t, os.Remove(dir))
	require.NoError(t, os.Rename(aside, dir))
	assert.Zero(t, terminal.InMemory(r))
	logs, err := filepath.Glob(filepath.Join(dir, "*.log"))
	require.NoError(t, err)
	assert.Empty(t, logs)
}

func TestALineThatIsTypedInPartsIsNotCutEither(t *testing.T) {
	term := startSpec(t, open(t, nil), terminal.Spec{Line: "stty -echo; echo ready; while read -r line; do echo ${#line}; done"})
	see(t, term, "ready")
	_, err := term.Write([]byte(strings.Repeat("x", 3000)))
	require.NoError(t, err)
	_, err = term.Write([]byte(strings.Repeat("x", 3000)))
	require.ErrorIs(t, err, terminal.ErrLineTooLong)
	_, err = term.Write([]byte(strings.Repeat("x", 1095) + "\r" + strings.Repeat("y", 4000)))
	require.NoError(t, err)
	see(t, term, `(?m)^4095$`)
	send(t, term, "Ctrl-U")
	_, err = term.Write([]byte(strings.Repeat("z", 4090) + "\r"))
	require.NoError(t, err)
	see(t, term, `(?m)^4090$`)
}

func TestOutputOfWhatHasEndedIsBoundedInMemory(t *testing.T) {
	testenv.Slow(t)
	const each = 8 << 20
	r := open(t, &terminal.Options{Grace: time.Hour, BufferLimit: each})
	var first *terminal.Terminal
	for range 12 {
		term := startSpec(t, r, terminal.Spec{Line: fmt.Sprintf("stty raw; head -c %d /dev/zero", each)})
		ended(t, term)
		if first == nil {
			first = term
		}
	}
	testenv.Await(t, "the oldest to leave", func() bool { return terminal.InMemory(r) <= 8 })
	assert.GreaterOrEqual(t, terminal.InMemory(r), 5)
	assert.Len(t, output(t, first), each)
}

func TestAResizeDoesNotWaitForAWrite(t *testing.T) {
	r := open(t, &terminal.Options{WritePatience: testenv.Patience})
	term := startSpec(t, r, terminal.Spec{Line: "stty raw -echo; echo ready; sleep 1000"})
	see(t, term, "ready")
	written := make(chan error)
	go func() {
		_, err := term.Write(make([]byte, 1<<20))
		written <- err
	}()
	require.NoError(t, term.Resize(terminal.Size{Cols: 90, Rows: 30}))
	select {
	case err := <-written:
		t.Fatalf("it was read: %v", err)
	default:
	}
	require.NoError(t, term.Close())
	require.ErrorIs(t, <-written, terminal.ErrEnded)
}

func TestWritersAreNotWaitedForLongerThanAWrite(t *testing.T) {
	testenv.Slow(t)
	const patience = 300 * time.Millisecond
	r := open(t, &terminal.Options{WritePatience: patience})
	term := startSpec(t, r, terminal.Spec{Line: "stty raw -echo; echo ready; sleep 1000"})
	see(t, term, "ready")
	began := time.Now()
	var all sync.WaitGroup
	// So many that one after the other they would take as long as a test waits at all.
	const writers = int(testenv.Patience / patience)
	for range writers {
		all.Go(func() {
			_, err := term.Write(make([]byte, 64<<10))
			assert.ErrorIs(t, err, terminal.ErrNotRead)
		})
	}
	all.Wait()
	assert.Less(t, time.Since(began), testenv.Patience, "one after the other")
	require.NoError(t, term.Close())
}

func TestADirectoryThatWasRemovedComesBack(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	r := openIn(t, dir, nil)
	require.NoError(t, os.RemoveAll(dir))
	term := start(t, r, "cat")
	infos, err := openIn(t, dir, nil).List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	assert.Equal(t, terminal.Running, infos[0].State)
	require.NoError(t, term.Close())
	require.NoError(t, os.RemoveAll(dir)) // Close has nothing to remove.
}

func TestNobodyInTheForegroundIsSaid(t *testing.T) {
	testenv.NeedProc(t)
	// The group in the foreground is that of a pipeline's first process, which has ended.
	term := startSpec(t, open(t, nil), terminal.Spec{Argv: []string{"python3", "-c", `
import os, signal, time
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
r, w = os.pipe()
pid = os.fork()
if pid == 0:
    os.read(r, 1)
    os._exit(0)
os.setpgid(pid, pid)
os.tcsetpgrp(0, pid)
os.write(w, b"x")
os.waitpid(pid, 0)
print("ready", flush=True)
time.sleep(1000)`}})
	see(t, term, "ready")
	require.ErrorIs(t, term.Signal(syscall.SIGINT), os.ErrProcessDone)
	assert.Equal(t, terminal.Running, term.Info().State)
}

func TestWhatIsTooLongToStartIsNotWrittenDownInFull(t *testing.T) {
	testenv.Slow(t)
	r := open(t, nil)
	long := strings.Repeat("x", 5<<20)
	for _, spec := range []terminal.Spec{{Line: long}, {Argv: []string{"echo", long}}, {Argv: append([]string{"echo"}, strings.Split(long, "")...)}} {
		_, err := r.Start(testenv.Context(t), spec)
		require.ErrorIs(t, err, syscall.E2BIG)
		require.Less(t, len(err.Error()), 1000)
		failure, ok := errors.AsType[*terminal.Error](err)
		require.True(t, ok)
		require.NoError(t, r.Forget(failure.ID))
	}
	_, err := r.Start(testenv.Context(t), terminal.Spec{Argv: []string{"true"}, Session: long})
	require.ErrorContains(t, err, "a session's name")
}

func TestADamagedRecordCanBeForgotten(t *testing.T) {
	r := open(t, nil)
	for name, content := range map[string]string{"term-a-aaaaaaaa": "{", "term-b-bbbbbbbb": `{"id":"term-c-cccccccc"}`} {
		require.NoError(t, os.WriteFile(filepath.Join(r.Dir(), name+".json"), []byte(content), 0o600))
		_, err := r.Get(name)
		require.Error(t, err)
		infos, err := r.List()
		require.NoError(t, err)
		assert.Empty(t, infos)
		require.NoError(t, r.Forget(name))
		require.ErrorIs(t, r.Forget(name), terminal.ErrNotFound)
	}
}

func TestWhatWasLeftByProgramsThatWereKilledIsSwept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "terminals")
	require.NoError(t, os.Mkdir(dir, 0o700))
	old := time.Now().Add(-time.Hour)
	for name, stays := range map[string]bool{
		".term-x-aaaaaaaa.json123": false, "term-x-aaaaaaaa.log": false, "term-x-aaaaaaaa.replay": false, "gone.lock": false, "notes.txt": true, "term-y-bbbbbbbb.json": true,
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
		require.NoError(t, os.Chtimes(path, old, old))
		r, err := terminal.Open(dir, nil)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		_, err = os.Stat(path)
		assert.Equal(t, stays, err == nil, name)
	}
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo.lock"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "term-z-cccccccc.json"), []byte(`{"id":"term-z-cccccccc","state":"running","owner":"fifo"}`), 0o600))
	infos, err := openIn(t, dir, nil).List()
	require.NoError(t, err)
	require.Len(t, infos, 1)
	assert.Equal(t, terminal.Lost, infos[0].State)
}

func TestLostIsToldOnce(t *testing.T) {
	r := open(t, nil)
	require.NoError(t, os.WriteFile(filepath.Join(r.Dir(), "term-z-cccccccc.json"), []byte(`{"id":"term-z-cccccccc","state":"running","owner":"nobody"}`), 0o600))
	var told atomic.Int32
	r.Observe(func(terminal.Change) { told.Add(1) })
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := r.List()
			assert.NoError(t, err)
		})
	}
	all.Wait()
	require.NoError(t, r.Close())
	assert.EqualValues(t, 1, told.Load())
}

func TestMarksOfWhatItsProgramRunsInAreNotPassedOn(t *testing.T) {
	term := startSpec(t, open(t, nil), terminal.Spec{Line: `echo "<$LIMPET_SESSION$LIMPET_JOB$LIMPET_COMMAND>$LIMPET_TERMINAL"`, Env: []string{"LIMPET_SESSION=a", "LIMPET_JOB=b", "LIMPET_TERMINAL=c"}})
	ended(t, term)
	assert.Equal(t, "<>"+term.ID()+"\r\n", output(t, term))
}

func TestAnInfoIsAValue(t *testing.T) {
	term := startSpec(t, open(t, nil), terminal.Spec{Line: "exit 3"})
	info := ended(t, term)
	info.Argv[0], info.Exit.Code = "changed", 7
	assert.Equal(t, "bash", term.Info().Argv[0])
	assert.Equal(t, 3, term.Info().Exit.Code)
}

// Another user's process, as one of sudo(8), cannot be signalled: its terminal is taken away,
// which it hears from the kernel.
func TestCloseDoesNotHangOnAnotherUsersProcess(t *testing.T) {
	testenv.NeedProc(t)
	if os.Getuid() != 0 {
		t.Skip("only root can make another user's process")
	}
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	dir := testenv.TempDir(t)
	testenv.LetPass(t, dir)
	self, err := os.ReadFile(os.Args[0]) // Where it is, others may not be let through.
	require.NoError(t, err)
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, self, 0o755))
	cmd := exec.CommandContext(testenv.Context(t), program, dir)
	cmd.Dir = dir // Others may not be let into that of the package.
	cmd.Env = append(os.Environ(), foreignVar+"=1", "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	// A bash that is root's and runs as that, whoever starts it.
	suid := filepath.Join(dir, "suid")
	b, err := os.ReadFile(bash)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(suid, b, 0o755))
	require.NoError(t, os.Chmod(suid, 0o755|os.ModeSetuid))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "state"), 0o700))
	require.NoError(t, os.Chown(filepath.Join(dir, "state"), 65534, 65534))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "closed")
}

// closeForeign is the other user of the test above.
func closeForeign(dir string) error {
	r, err := terminal.Open(filepath.Join(dir, "state", "terminals"), nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), testenv.Patience)
	defer cancel()
	t, err := r.Start(ctx, terminal.Spec{Argv: []string{filepath.Join(dir, "suid"), "--norc", "-p", "-c", `echo "uid $EUID"; read -r x; :`}})
	if err != nil {
		return err
	}
	if w, err := t.Wait(ctx, terminal.WaitOptions{Pattern: `uid \d+`}); err != nil || w.Match != "uid 0" {
		return fmt.Errorf("no other user's process: %q, %w", w.Match, err)
	}
	if err := errors.Join(t.Close(), r.Close()); err != nil {
		return err
	}
	fmt.Println("closed")
	return nil
}
