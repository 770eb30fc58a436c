package interrupt

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// On a busy machine each child of a shell may have ended before it can be stopped. The
// shell uses processor time meanwhile, but does not compute: to signal it now would be to
// do so at a bad moment.
func TestAShellThatStartsProgramsDoesNotCompute(t *testing.T) {
	testenv.Slow(t)
	const patience = 30 * time.Second
	cmd := exec.Command("bash", "-c", "while :; do /bin/true; done")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It runs.
		_ = cmd.Wait()         // Killed.
	})
	shell, err := proc.Read(cmd.Process.Pid)
	require.NoError(t, err)
	// Before its first child bash starts, and computes for that.
	require.Eventually(t, func() bool { return childFaults(shell.ID()) > 0 }, patience, time.Millisecond)
	s := stopping{stood: make(map[proc.ID]bool), limit: time.Now().Add(patience)}
	began := proc.Ran(shell.ID())
	tooLate := func(kid proc.Stat) bool {
		for proc.Ran(shell.ID())-began < 2*computes && !s.late() {
			if state := proc.State(kid.ID()); state == 0 || state == 'Z' {
				break
			}
			time.Sleep(pause)
		}
		return true
	}
	awaited := s.pin(func(sig syscall.Signal) { _ = proc.Signal(shell.ID(), sig) }, shell.ID(), tooLate)
	t.Cleanup(func() {
		for _, id := range s.paused {
			_ = proc.Signal(id, syscall.SIGKILL) // Else it would outlive the shell.
		}
	})
	assert.Len(t, awaited, 1)
	assert.False(t, s.late())
}
