package terminal

import (
	"os/exec"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// A look that is shared must not be older than the question: what was started before would
// live on.
func TestASharedLookFindsWhatWasThereWhenItWasAskedFor(t *testing.T) {
	testenv.NeedProc(t)
	var c census
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			for range 10 {
				cmd := exec.Command("sleep", "1000")
				if !assert.NoError(t, cmd.Start()) {
					return
				}
				l := c.look()
				assert.NoError(t, l.err)
				st, err := proc.Read(cmd.Process.Pid)
				assert.NoError(t, err)
				_, there := l.tree.Get(st.ID())
				assert.True(t, there)
				assert.NoError(t, cmd.Process.Kill())
				_ = cmd.Wait() // It was killed.
				_, there = c.look().tree.Get(st.ID())
				assert.False(t, there)
			}
		})
	}
	all.Wait()
	require.Nil(t, c.next)
}
