package keeper

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// stateOf is that of a shell which has run a script.
func stateOf(t *testing.T, script string) *shell.State {
	t.Helper()
	sh, err := shell.Start(testenv.Context(t), nil)
	require.NoError(t, err)
	defer sh.Close()
	_, err = sh.Run(testenv.Context(t), script)
	require.NoError(t, err)
	state, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
	return &state
}

func TestWhatIsGivenIsTakenWholeOrNotAtAll(t *testing.T) {
	dir := testenv.TempDir(t)
	spec := Spec{State: stateOf(t, "cd /usr"), Checkpoints: []session.Checkpoint{{Name: "one", State: *stateOf(t, "cd /tmp")}}}
	f, err := spec.given(dir)
	require.NoError(t, err)
	st, err := f.Stat()
	require.NoError(t, err)
	assert.EqualValues(t, 0o600, st.Mode().Perm())
	names, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, names, "it has no name")
	good := make([]byte, st.Size())
	_, err = f.ReadAt(good, 0)
	require.NoError(t, err)
	var got Spec
	require.NoError(t, got.take(f))
	assert.Equal(t, "/usr", got.State.Dir())
	require.Len(t, got.Checkpoints, 1)
	assert.Equal(t, "one", got.Checkpoints[0].Name)
	assert.Equal(t, "/tmp", got.Checkpoints[0].State.Dir())
	require.Error(t, f.Close(), "it was closed")

	for _, bad := range [][]byte{nil, good[:len(good)/2], append([]byte("x"), good...), []byte(`{}`), []byte(`{"state":"bGltcGV0"}`)} {
		path := dir + "/bad"
		require.NoError(t, os.WriteFile(path, bad, 0o600))
		f, err := os.Open(path)
		require.NoError(t, err)
		var got Spec
		require.ErrorIs(t, got.take(f), errGiven, "%.30q", bad)
	}
	d, err := os.Open(dir)
	require.NoError(t, err)
	require.ErrorIs(t, got.take(d), errGiven)
}
