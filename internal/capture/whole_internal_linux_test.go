package capture

import (
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestAProcessIsStarvedUntilItHasRun(t *testing.T) {
	look := func(script string, state byte) proc.Stat {
		t.Helper()
		cmd := exec.Command("bash", "-c", script)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // It was killed.
		})
		var st proc.Stat
		testenv.Await(t, "its state", func() (is bool) {
			var err error
			st, err = proc.Read(cmd.Process.Pid)
			return err == nil && st.Execed && st.State == state && proc.Ran(st.ID()) > 0
		})
		return st
	}
	busy := look("while :; do :; done", 'R')
	assert.True(t, starved(busy, time.Hour))
	assert.False(t, starved(busy, time.Nanosecond))
	assert.False(t, starved(look("exec sleep 1000", 'S'), time.Hour))
}
