package approve

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
)

// People may answer at several terminals at a time.
func TestNoRuleIsLostToAnother(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	const people = 16
	var all sync.WaitGroup
	for i := range people {
		all.Go(func() {
			assert.NoError(t, remember(t.Context(), []approval.Own{{Verdict: approval.Allow, Words: []string{"make", strconv.Itoa(i)}}}))
		})
	}
	all.Wait()
	f, err := userRules()
	require.NoError(t, err)
	assert.Len(t, f.Rules, people)
}
