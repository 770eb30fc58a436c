package proc_test

import (
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestWhatIsStartedDoesNotIgnoreSIGINTAndTheProgramStillDoes(t *testing.T) {
	testenv.NeedProc(t)
	signal.Ignore(syscall.SIGINT)
	defer signal.Reset(syscall.SIGINT)
	for range 3 { // Each start finds it as the one before did.
		cmd := exec.Command("sleep", "1000")
		require.NoError(t, proc.Start(cmd))
		assert.True(t, signal.Ignored(syscall.SIGINT))
		require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
		assert.ErrorContains(t, cmd.Wait(), "interrupt")
	}
	require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGINT)) // Or this is the end of the test.
}

func TestStartsBesideEachOtherDoNotIgnoreSIGINT(t *testing.T) {
	testenv.NeedProc(t)
	signal.Ignore(syscall.SIGINT)
	defer signal.Reset(syscall.SIGINT)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				cmd := exec.Command("grep", "SigIgn", "/proc/self/status")
				var out strings.Builder
				cmd.Stdout = &out
				assert.NoError(t, proc.Start(cmd))
				assert.NoError(t, cmd.Wait())
				assert.Equal(t, "SigIgn:\t0000000000000000\n", out.String())
			}
		})
	}
	all.Wait()
}
