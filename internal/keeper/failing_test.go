package keeper_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
)

// Each name has one place among those that are remembered, however often its session fails to start.
func TestANameThatFailsAgainAndAgainHasOthersNotForgotten(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "q", nil)
	req := command.Request{ID: "two", Script: "exit 3"}
	_, err := k.Do(testenv.Context(t), req)
	require.NoError(t, err)
	require.NoError(t, r.Close(testenv.Context(t), k))
	const most = 32 // That are remembered.
	for range most + 1 {
		_, err := r.Session(testenv.Context(t), "bad", &keeper.Spec{Audit: "/proc/none/x", AuditRequired: true})
		require.Error(t, err)
	}
	all, err := r.List(testenv.Context(t), true)
	require.NoError(t, err)
	assert.Len(t, all, 2)
	_, err = kept(t, r, "q", nil).Do(testenv.Context(t), req)
	var ended *wire.EndedError
	require.ErrorAs(t, err, &ended)
	assert.Equal(t, 3, ended.Code)
}
