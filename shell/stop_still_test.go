//go:build linux

package shell_test

import (
	"errors"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/shell"
)

func TestACommandThatStopsItsOwnShellIsStopped(t *testing.T) {
	testenv.Slow(t)
	for _, script := range []string{
		"kill -STOP $$; touch X", "kill -STOP $BASHPID; touch X", "set -e; f() { kill -STOP $BASHPID; }; f; touch X", inBash + "kill -STOP $$; touch X",
	} {
		sh := start(t, &shell.Options{Dir: t.TempDir()})
		run(t, sh, "v=kept")
		done := make(chan answer, 1)
		go func() {
			res, err := sh.Run(t.Context(), script)
			done <- answer{res, err}
		}()
		got := await(t, done)
		stop, ok := errors.AsType[*interrupt.Error](got.err)
		require.True(t, ok, "%v", got.err)
		assert.ErrorContains(t, stop, "SIGSTOP")
		assert.Equal(t, "kept", says(t, sh, "echo $v; [[ ! -e X ]] || echo X"))
	}
}

func TestAShellThatSomebodyContinuesGoesOn(t *testing.T) {
	testenv.Slow(t)
	sh := start(t, &shell.Options{Dir: t.TempDir()})
	assert.Equal(t, "on", says(t, sh, "(sleep 1.5; kill -CONT $$) & kill -STOP $$; echo on"))
}

func TestABashThatWasStoppedWhileItWasIdleRunsTheNextCommand(t *testing.T) {
	sh := start(t, &shell.Options{Dir: t.TempDir()})
	pid := stopIdle(t, sh)
	assert.Equal(t, strconv.Itoa(pid), says(t, sh, "echo $$"))
}

// stopIdle stops the session's bash when it waits for a command.
func stopIdle(t *testing.T, sh *shell.PersistentShell) (pid int) {
	t.Helper()
	pid, err := strconv.Atoi(says(t, sh, "echo $$"))
	require.NoError(t, err)
	st, err := proc.Read(pid)
	require.NoError(t, err)
	testenv.Await(t, "bash to stand still", func() bool { // A save that was just due has it go on.
		require.NoError(t, proc.Signal(st.ID(), syscall.SIGSTOP))
		return proc.AwaitStop(st.ID(), time.Minute)
	})
	return pid
}

func TestAStoppedBashIsHandedOverAtItsLimit(t *testing.T) {
	sh := start(t, &shell.Options{Dir: t.TempDir()})
	stopIdle(t, sh)
	began := time.Now()
	_, err := sh.Do(t.Context(), command.Request{Script: "kill -STOP $$; echo on", Timeout: 150 * time.Millisecond, HandOver: true})
	running := handedOver(t, err)
	// It took ten seconds: two times as long as a save may.
	assert.Less(t, time.Since(began), 4*time.Second)
	began = time.Now()
	require.NoError(t, running.Close())
	assert.Less(t, time.Since(began), 8*time.Second)
}
