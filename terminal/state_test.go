package terminal_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal"
)

func TestAStateGoesForwardOnly(t *testing.T) {
	states := []terminal.State{terminal.Starting, terminal.Running, terminal.Succeeded, terminal.Failed, terminal.Cancelled, terminal.Lost}
	may := map[terminal.State]string{
		terminal.Starting: "running failed cancelled lost",
		terminal.Running:  "succeeded failed cancelled lost",
	}
	for _, from := range states {
		assert.Equal(t, may[from] == "", from.Ended(), from)
		for _, to := range states {
			err := from.To(to)
			if slices.Contains(strings.Fields(may[from]), string(to)) {
				require.NoError(t, err, "%s to %s", from, to)
				continue
			}
			var wrong *terminal.TransitionError
			require.ErrorAs(t, err, &wrong, "%s to %s", from, to)
			assert.Equal(t, terminal.TransitionError{From: from, To: to}, *wrong)
		}
	}
	assert.EqualError(t, terminal.Lost.To(terminal.Running), "a terminal that is lost stays so, and cannot be running")
	assert.EqualError(t, terminal.Starting.To(terminal.Succeeded), "a terminal that is starting cannot be succeeded next")
}

func TestChangesAreToldToObservers(t *testing.T) {
	r := open(t, nil)
	var (
		mu      sync.Mutex
		changes = make(map[string][]terminal.Change)
		busy    int
	)
	all := make(chan struct{}, 100)
	stop := r.Observe(func(c terminal.Change) {
		mu.Lock()
		busy++
		assert.Equal(t, 1, busy, "two at a time")
		mu.Unlock()
		_, err := r.Get(c.ID) // It may call the registry.
		assert.NoError(t, err)
		mu.Lock()
		busy--
		changes[c.ID] = append(changes[c.ID], c)
		mu.Unlock()
		if c.To.Ended() {
			all <- struct{}{}
		}
	})
	stopped := 0
	stopOther := r.Observe(func(terminal.Change) { stopped++ })
	stopOther()
	stopOther()
	good, bad, closed := startSpec(t, r, terminal.Spec{Line: "true"}), startSpec(t, r, terminal.Spec{Line: "false"}), start(t, r, "cat")
	require.NoError(t, closed.Close())
	_, err := r.Start(t.Context(), terminal.Spec{})
	require.Error(t, err)
	for range 4 {
		<-all
	}
	stop()
	mu.Lock()
	defer mu.Unlock()
	assert.Len(t, changes, 4)
	for id, want := range map[string][]terminal.State{
		good.ID():   {"", terminal.Starting, terminal.Running, terminal.Succeeded},
		bad.ID():    {"", terminal.Starting, terminal.Running, terminal.Failed},
		closed.ID(): {"", terminal.Starting, terminal.Running, terminal.Cancelled},
	} {
		require.Len(t, changes[id], 3)
		for i, c := range changes[id] {
			assert.Equal(t, want[i], c.From)
			assert.Equal(t, want[i+1], c.To)
			assert.Equal(t, c.To, c.Info.State)
		}
	}
	assert.Zero(t, stopped)
}
