package session_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func TestAForkHasWhatItsParentHadAndIsSeparate(t *testing.T) {
	r := registry(t, nil)
	parent := open(t, r, "parent")
	run(t, parent, "cd /tmp; x=1; a=(1 '2 3'); f() { echo f $x; }; export E=e; set -o noglob; shopt -s nullglob; alias l='echo l'; umask 027")
	fork, err := parent.Fork(testenv.Context(t), "fork")
	require.NoError(t, err)
	assert.Equal(t, session.Unused, info(t, fork).State)
	assert.Equal(t, "/tmp", info(t, fork).Dir)
	run(t, parent, "x=parent; cd /")
	assert.Equal(t, "/tmp 1 2 3 f 1 e 0027", says(t, fork, `echo $PWD $x "${a[1]}" $(f) $(bash -c 'echo $E') $(umask)`))
	assert.Equal(t, "on on", says(t, fork, "[[ -o noglob ]] && printf on; shopt -q nullglob && echo ' on'"))
	run(t, fork, "x=fork; unset -f f")
	assert.Equal(t, "parent f parent /", says(t, parent, "echo $x $(f) $PWD"))

	_, err = parent.Fork(testenv.Context(t), "fork")
	require.ErrorIs(t, err, session.ErrExists)
	_, err = parent.Fork(testenv.Context(t), "no/name")
	require.ErrorIs(t, err, session.ErrName)
	require.NoError(t, parent.Close())
	assert.Equal(t, "fork", says(t, fork, "echo $x"), "a fork outlives its parent")
}

func TestRollbackBringsACheckpointBack(t *testing.T) {
	s := open(t, registry(t, nil), "s")
	run(t, s, "cd /tmp; x=1; f() { echo f; }")
	require.NoError(t, s.Checkpoint(testenv.Context(t), "good"))
	run(t, s, "cd /; x=2; unset -f f; set -u")
	_, err := s.Rollback(testenv.Context(t), "good")
	require.NoError(t, err)
	assert.Equal(t, "/tmp 1 f no", says(t, s, "echo $PWD $x $(f) ${unset}no"))
	assert.Equal(t, "/tmp", s.Dir())
	run(t, s, "x=3; exit 1")
	_, err = s.Rollback(testenv.Context(t), "good")
	require.NoError(t, err)
	assert.Equal(t, "1", says(t, s, "echo $x"), "it stays")

	_, err = s.Rollback(testenv.Context(t), "bad")
	require.ErrorIs(t, err, session.ErrNotFound)
	assert.ErrorContains(t, err, "there are good")
	require.ErrorIs(t, s.Checkpoint(testenv.Context(t), "../x"), session.ErrName)
}

func TestASessionCanBeginAsOneOfAnotherRegistry(t *testing.T) {
	from := open(t, registry(t, nil), "from")
	run(t, from, "cd /tmp; x=1")
	require.NoError(t, from.Checkpoint(testenv.Context(t), "good"))
	run(t, from, "x=2")
	state, err := from.State(testenv.Context(t))
	require.NoError(t, err)
	r := registry(t, nil)
	s, err := r.Open(testenv.Context(t), "to", &session.Spec{Dir: "/usr", State: &state, Checkpoints: from.Checkpoints()})
	require.NoError(t, err)
	assert.Equal(t, "/tmp", s.Dir())
	assert.Equal(t, []string{"good"}, info(t, s).Checkpoints)
	assert.Equal(t, "2 /tmp", says(t, s, "echo $x $PWD"))
	_, err = s.Rollback(testenv.Context(t), "good")
	require.NoError(t, err)
	assert.Equal(t, "1", says(t, s, "echo $x"))
	require.NoError(t, s.Reset(testenv.Context(t)))
	assert.Equal(t, "none /usr", says(t, s, "echo ${x-none} $PWD"))
}

func TestBackgroundSaysWhatWasLeftRunning(t *testing.T) {
	testenv.NeedProc(t)
	s := open(t, registry(t, nil), "s")
	list, err := s.Background(testenv.Context(t))
	require.NoError(t, err)
	assert.Empty(t, list)
	assert.Equal(t, session.Unused, info(t, s).State, "it starts nothing")
	run(t, s, "sleep 1000 &")
	list, err = s.Background(testenv.Context(t))
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Contains(t, list[0].Command, "sleep")
}

func TestTheOldestCheckpointGoes(t *testing.T) {
	s := open(t, registry(t, &session.Options{MaxCheckpoints: 2}), "s")
	for _, name := range []string{"a", "b", "a", "c"} {
		run(t, s, "x="+name)
		require.NoError(t, s.Checkpoint(testenv.Context(t), name))
	}
	assert.Equal(t, []string{"a", "c"}, info(t, s).Checkpoints)
}
