package proc_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// start starts a bash script that says "ready" and then, at the end of the
// test, is killed and waited for.
func start(t *testing.T, script string, env ...string) (proc.Stat, []string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()         // It may have ended.
		_ = cmd.Process.Kill()    // As above.
		_, _ = cmd.Process.Wait() // As above.
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	fields := strings.Fields(line)
	require.NotEmpty(t, fields)
	require.Equal(t, "ready", fields[0])
	st, err := proc.Read(cmd.Process.Pid)
	require.NoError(t, err)
	return st, fields[1:]
}

func mark(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("LIMPET_TEST_MARK=%s-%d", t.Name(), time.Now().UnixNano())
}

func pid(t *testing.T, s string) proc.Stat {
	t.Helper()
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	st, err := proc.Read(n)
	require.NoError(t, err)
	return st
}

func TestAReusedPIDIsSignalledByNobody(t *testing.T) {
	st, _ := start(t, "echo ready; read -r; :")
	other := proc.ID{PID: st.PID, Start: st.Start + 1}
	require.ErrorIs(t, proc.Signal(other, syscall.SIGKILL), proc.ErrGone)
	now, err := proc.Read(st.PID)
	require.NoError(t, err)
	assert.Equal(t, st.ID(), now.ID())
	assert.False(t, now.Zombie())
	require.NoError(t, proc.Signal(st.ID(), syscall.SIGKILL))
	require.Eventually(t, func() bool {
		now, err := proc.Read(st.PID)
		return err != nil || now.Zombie() && now.Ended == syscall.SIGKILL
	}, testenv.Patience, time.Millisecond)
}

func TestAProcessThatNeverWasIsGone(t *testing.T) {
	require.ErrorIs(t, proc.Signal(proc.ID{PID: 1 << 22, Start: 1}, 0), proc.ErrGone)
	_, err := proc.Read(1 << 22)
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Empty(t, proc.Command(1<<22))
	assert.False(t, proc.HasEnv(1<<22, "A=1"))
	assert.False(t, proc.ReadSignals(1<<22).Ignores(syscall.SIGINT))
	assert.False(t, proc.AwaitsInput(1<<22, proc.Stdin(1<<22)))
}

func TestSignalsTellsWhichAreIgnoredAndWhichHandled(t *testing.T) {
	st, _ := start(t, "trap '' INT USR2; trap : HUP; echo ready; read -r; :")
	assert.True(t, proc.ReadSignals(st.PID).Handles(syscall.SIGHUP))
	assert.False(t, proc.ReadSignals(st.PID).Handles(syscall.SIGUSR2))
	assert.True(t, proc.ReadSignals(st.PID).Ignores(syscall.SIGINT))
	assert.True(t, proc.ReadSignals(st.PID).Ignores(syscall.SIGUSR2))
	assert.False(t, proc.ReadSignals(st.PID).Ignores(syscall.SIGUSR1))
}

func TestHasEnvWantsTheWholeEntry(t *testing.T) {
	st, _ := start(t, "echo ready; read -r; :", "LIMPET_TEST_X=abc", "LIMPET_TEST_EMPTY=")
	assert.True(t, proc.HasEnv(st.PID, "LIMPET_TEST_X=abc"))
	assert.True(t, proc.HasEnv(st.PID, "LIMPET_TEST_EMPTY="))
	assert.False(t, proc.HasEnv(st.PID, "LIMPET_TEST_X=ab"))
	assert.False(t, proc.HasEnv(st.PID, "TEST_X=abc"))
	for name, want := range map[string]string{"LIMPET_TEST_X": "abc", "LIMPET_TEST_EMPTY": ""} {
		value, ok := proc.Env(st.PID, name)
		assert.True(t, ok)
		assert.Equal(t, want, value)
	}
	_, ok := proc.Env(st.PID, "LIMPET_TEST")
	assert.False(t, ok)
}

// A process has no environment, for an instant, while it becomes another
// program. Who asks just then must not take it for a stranger.
func TestHasEnvHoldsDuringAnExec(t *testing.T) {
	testenv.Slow(t)
	entry := mark(t)
	path := filepath.Join(t.TempDir(), "again")
	require.NoError(t, os.WriteFile(path, []byte("(($1)) && exec bash \"$0\" $(($1 - 1))\necho ready; read -r; :\n"), 0o600))
	cmd := exec.Command("bash", path, "300")
	cmd.Env = append(os.Environ(), entry)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	ready := make(chan struct{})
	go func() {
		defer close(ready)
		_, _ = bufio.NewReader(out).ReadString('\n') // The end is as good.
	}()
	// Before its first exec it is a fork of this program.
	require.Eventually(t, func() bool { return proc.HasEnv(cmd.Process.Pid, entry) }, testenv.Patience, time.Millisecond)
	looks, missed := 0, 0
	for asking := true; asking; looks++ {
		if !proc.HasEnv(cmd.Process.Pid, entry) {
			missed++
		}
		select {
		case <-ready:
			asking = false
		default:
		}
	}
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	assert.Zero(t, missed, "of %d looks", looks)
}

func TestAwaitsInputSeesAReadOfStdin(t *testing.T) {
	st, _ := start(t, "echo ready; read -r; :")
	if _, err := os.ReadFile("/proc/self/syscall"); err != nil {
		t.Skipf("no /proc/PID/syscall: %v", err)
	}
	require.Eventually(t, func() bool { return proc.AwaitsInput(st.PID, proc.Stdin(st.PID)) }, testenv.Patience, time.Millisecond)
	busy, _ := start(t, "echo ready; while :; do :; done")
	assert.False(t, proc.AwaitsInput(busy.PID, proc.Stdin(busy.PID)))

	assert.False(t, proc.AwaitsInput(st.PID, proc.Stdin(busy.PID)), "its stdin is another file")
}

func TestAwaitsChildSeesAWaitThatWasStopped(t *testing.T) {
	if _, err := os.ReadFile("/proc/self/syscall"); err != nil {
		t.Skipf("no /proc/PID/syscall: %v", err)
	}
	st, pids := start(t, "sleep 1000 >/dev/null & echo ready $!; wait")
	require.Eventually(t, func() bool { return proc.AwaitsChild(st.PID) }, testenv.Patience, time.Millisecond)
	require.NoError(t, proc.Signal(st.ID(), syscall.SIGSTOP))
	require.True(t, proc.AwaitStop(st.ID(), testenv.Patience))
	assert.True(t, proc.AwaitsChild(st.PID))
	require.NoError(t, proc.Signal(pid(t, pids[0]).ID(), syscall.SIGKILL))

	busy, _ := start(t, "echo ready; while :; do :; done")
	require.NoError(t, proc.Signal(busy.ID(), syscall.SIGSTOP))
	require.True(t, proc.AwaitStop(busy.ID(), testenv.Patience))
	assert.False(t, proc.AwaitsChild(busy.PID))
}

func TestAwaitStopEndsWithTheProcess(t *testing.T) {
	st, _ := start(t, "echo ready; read -r; :")
	assert.False(t, proc.AwaitStop(st.ID(), time.Millisecond), "it was not stopped")
	require.NoError(t, proc.Signal(st.ID(), syscall.SIGKILL))
	assert.False(t, proc.AwaitStop(st.ID(), testenv.Patience))
}

func TestChildrenAreThoseThatLiveAndTheZombies(t *testing.T) {
	st, pids := start(t, "sleep 1000 >/dev/null & a=$!; sleep 1001 >/dev/null & echo ready $a $!; read -r; :")
	a, b := pid(t, pids[0]), pid(t, pids[1])
	require.NoError(t, proc.Signal(st.ID(), syscall.SIGSTOP)) // It reaps nobody.
	require.NoError(t, proc.Signal(a.ID(), syscall.SIGKILL))
	t.Cleanup(func() { _ = proc.Signal(b.ID(), syscall.SIGKILL) }) // It lives.
	zombie := func() bool {
		now, err := proc.Read(a.PID)
		return err == nil && now.Zombie()
	}
	require.Eventually(t, zombie, testenv.Patience, time.Millisecond)
	kids := proc.Children(st.PID)
	require.Len(t, kids, 2)
	for _, kid := range kids {
		assert.Equal(t, kid.PID == a.PID, kid.Zombie())
		assert.Equal(t, st.PID, kid.PPID)
	}
	assert.Empty(t, proc.Children(b.PID))
	assert.Empty(t, proc.Children(1<<22))
}

func TestAProgramsNameMayHoldParenthesesAndSpaces(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "a) R 1 (b")
	b, err := os.ReadFile(sleep)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, b, 0o755))
	cmd := exec.Command(path, "1000")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It cannot have ended.
		_ = cmd.Wait()         // Killed.
	})
	st, err := proc.Read(cmd.Process.Pid)
	require.NoError(t, err)
	assert.Equal(t, cmd.Process.Pid, st.PID)
	assert.Equal(t, os.Getpid(), st.PPID)
}

func TestSessionFindsThoseWhoLeftTheirParents(t *testing.T) {
	entry := mark(t)
	shell, pids := start(t, "setsid sleep 1000 >/dev/null & a=$!\n"+
		"b=$( (setsid sleep 1001 >/dev/null 2>&1 & echo $!) )\n"+ // its parent is gone
		"sleep 1002 >/dev/null & c=$!\n"+
		"env -i sleep 1003 >/dev/null & d=$!\n"+ // no mark, but a child
		"echo ready $a $b $c $d; read -r", entry)
	t.Cleanup(func() { proc.KillAll(entry) })
	tree, err := proc.Snapshot()
	require.NoError(t, err)
	var found []int
	for _, st := range tree.Session(shell.ID(), entry) {
		found = append(found, st.PID)
	}
	var want []int
	for _, p := range pids {
		st := pid(t, p)
		want = append(want, st.PID)
	}
	assert.ElementsMatch(t, want, found)
	d := pid(t, pids[3])
	t.Cleanup(func() { _ = proc.Signal(d.ID(), syscall.SIGKILL) }) // It carries no mark.
}

func TestOriginTellsAnEarlierJobsOffspringFromTheRest(t *testing.T) {
	entry := mark(t)
	shell, pids := start(t, "bash -c 'sleep 1000 & echo $!; wait' >job & job=$!\n"+
		"until [[ -s job ]]; do :; done; read -r child <job; rm job\n"+
		"sleep 1001 >/dev/null & other=$!\n"+
		"echo ready $job $child $other; read -r", entry)
	t.Cleanup(func() { proc.KillAll(entry) })
	job, child, other := pid(t, pids[0]), pid(t, pids[1]), pid(t, pids[2])
	tree, err := proc.Snapshot()
	require.NoError(t, err)
	earlier := map[proc.ID]bool{job.ID(): true}
	assert.True(t, tree.Origin(job, earlier, shell.PID))
	assert.True(t, tree.Origin(child, earlier, shell.PID))
	assert.False(t, tree.Origin(other, earlier, shell.PID))
	assert.True(t, tree.Below(child.PID, shell.ID()))
	assert.False(t, tree.Below(shell.PID, child.ID()))
}

func TestKillAllLeavesNothing(t *testing.T) {
	entry := mark(t)
	_, pids := start(t, "trap '' TERM INT HUP; sleep 1000 >/dev/null & a=$!; setsid sleep 1001 >/dev/null & b=$!\n"+
		"sleep 1002 >/dev/null & c=$!; kill -STOP $c; echo ready $a $b $c; read -r", entry)
	var stats []proc.Stat
	for _, p := range pids {
		stats = append(stats, pid(t, p))
	}
	bystander, _ := start(t, "echo ready; read -r; :")
	proc.KillAll(entry)
	for _, st := range stats {
		now, err := proc.Read(st.PID)
		assert.True(t, err != nil || now.ID() != st.ID() || now.Zombie() || now.Exiting, "%+v", now)
	}
	now, err := proc.Read(bystander.PID)
	require.NoError(t, err)
	assert.False(t, now.Zombie())
}

func TestTheKernelsThreadsAreNotListed(t *testing.T) {
	all, err := proc.List()
	require.NoError(t, err)
	self := false
	for _, st := range all {
		self = self || st.PID == os.Getpid()
		assert.NotEqual(t, "kthreadd", proc.Command(st.PID), "of the host; a container has none")
	}
	assert.True(t, self)
}
