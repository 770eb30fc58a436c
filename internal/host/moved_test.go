package host_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// Who upgrades it may be somebody over there.
func TestASessionThatIsUpgradedOverThereIsFollowed(t *testing.T) {
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h := dial(t, m.target, nil)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = s.Run(ctx, "x=1")
	require.NoError(t, err)
	there, err := keeper.Open(filepath.Join(m.home, ".local/state/limpet/keep"))
	require.NoError(t, err)
	there.Version, there.Execute = keeper.Version(), keeper.Itself
	k, err := there.Session(ctx, "s", nil)
	require.NoError(t, err)
	defer k.Disconnect()
	for range 3 {
		_, err = there.Upgrade(ctx, k, keeper.Upgrade{Force: true})
		require.NoError(t, err)
		res, err := s.Run(ctx, "echo $x")
		require.NoError(t, err)
		assert.Equal(t, "1\n", res.Stdout.String())
	}
}
