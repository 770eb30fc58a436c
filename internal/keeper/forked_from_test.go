package keeper_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// listed is what a registry lists of a session.
func listed(t *testing.T, r *keeper.Registry, name string) keeper.Listed {
	t.Helper()
	list, err := r.List(testenv.Context(t), true)
	require.NoError(t, err)
	for _, one := range list {
		if one.Record.Name == name {
			return one
		}
	}
	require.FailNow(t, "there is no session "+name)
	return keeper.Listed{}
}

func TestAForkSaysFromWhichSessionItCame(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	parent := kept(t, r, "parent", nil)
	from := &keeper.Parent{ID: parent.Record.SessionID(), Name: "parent"}
	one := fork(t, parent, "one")
	assert.Equal(t, from, one.Record.ForkedFrom())
	two := fork(t, one, "two")
	fromOne := &keeper.Parent{ID: one.Record.SessionID(), Name: "one"}
	assert.Equal(t, fromOne, two.Record.ForkedFrom(), "a fork of a fork says which of them it was")
	assert.Nil(t, listed(t, r, "parent").Record.ForkedFrom())

	// What is done with its shell is not another fork.
	require.NoError(t, one.Checkpoint(testenv.Context(t), "good"))
	_, err := one.Rollback(testenv.Context(t), "good")
	require.NoError(t, err)
	require.NoError(t, one.Reset(testenv.Context(t)))
	assert.Equal(t, from, listed(t, r, "one").Record.ForkedFrom())
	assert.Equal(t, []string{"good"}, listed(t, r, "one").Info.Checkpoints)
	assert.Empty(t, listed(t, r, "two").Info.Checkpoints)

	// Nor does it depend on the parent, or on the name of the parent.
	require.NoError(t, r.Close(testenv.Context(t), parent))
	again := kept(t, r, "parent", nil)
	assert.NotEqual(t, from.ID, again.Record.SessionID())
	assert.Equal(t, from, listed(t, r, "one").Record.ForkedFrom())
	require.NoError(t, r.Close(testenv.Context(t), one))
	ended := listed(t, r, "one")
	assert.False(t, ended.Alive)
	assert.Equal(t, from, ended.Record.ForkedFrom(), "it is remembered of one that has ended")
	assert.Equal(t, fromOne, listed(t, r, "two").Record.ForkedFrom())
}

func TestAnUpgradeKeepsFromWhichSessionAForkCame(t *testing.T) {
	dir := testenv.TempDir(t)
	r := registry(t, dir)
	parent := kept(t, r, "parent", nil)
	from := &keeper.Parent{ID: parent.Record.SessionID(), Name: "parent"}
	fork(t, parent, "one")
	for _, version := range []*keeper.Registry{newer(t, dir), r} { // And once more, from that one.
		for _, name := range []string{"one", "parent"} {
			upgraded(t, version, name, keeper.Upgrade{})
			assert.Equal(t, version.Version, listed(t, r, name).Record.Version)
		}
		one := listed(t, r, "one").Record
		assert.Equal(t, from, one.ForkedFrom())
		assert.Equal(t, from.ID, listed(t, r, "parent").Record.SessionID(), "it is found by that though another keeper has it")
	}
	assert.Equal(t, from, fork(t, kept(t, r, "parent", nil), "later").Record.ForkedFrom(), "of all keepers of a session the forks say the same")
}

// A record of a limpet that wrote down nothing of forks, and records that lie.
func TestAForkWhoseRecordSaysNothingOfUseIsNone(t *testing.T) {
	dir := testenv.TempDir(t)
	r := registry(t, dir)
	parent := kept(t, r, "parent", nil)
	one := fork(t, parent, "one")
	path := filepath.Join(r.Dir(), one.Record.ID, "record.json")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var record map[string]any
	require.NoError(t, json.Unmarshal(b, &record))
	spec, ok := record["spec"].(map[string]any)
	require.True(t, ok)
	require.Contains(t, spec, "forked_from")
	other := map[string]any{"id": parent.Record.SessionID(), "name": "parent", "more": true} // of a limpet that is newer
	for what, from := range map[string]any{
		"nothing": nil, "no ID": map[string]string{"name": "parent"}, "no name": map[string]string{"id": "x"},
		"what moves a cursor": map[string]string{"id": "x", "name": "a\x1b[2Jb"}, "a path": map[string]string{"id": "../x", "name": "a"},
		"a long name": map[string]string{"id": "x", "name": strings.Repeat("a", 65)}, "more": other,
	} {
		if spec["forked_from"] = from; from == nil {
			delete(spec, "forked_from")
		}
		b, err := json.Marshal(record)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		got := listed(t, r, "one")
		assert.True(t, got.Alive, what)
		assert.NotNil(t, got.Info, what)
		if what == "more" {
			assert.Equal(t, &keeper.Parent{ID: parent.Record.SessionID(), Name: "parent"}, got.Record.ForkedFrom())
		} else {
			assert.Nil(t, got.Record.ForkedFrom(), what)
		}
	}
}
