package keeper

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

// executing returns a registry of its own whose sessions end with the test. Its keepers are this program, unless a test says otherwise.
func executing(t *testing.T) *Registry {
	t.Helper()
	r, err := Open(testenv.TempDir(t))
	require.NoError(t, err)
	r.Version, r.Execute = "test", itself
	t.Cleanup(func() {
		list, err := r.List(testenv.Context(t), false)
		require.NoError(t, err)
		for _, one := range list {
			if err := r.Kill(testenv.Context(t), one.Record.Name); !errors.Is(err, session.ErrNotFound) { // It ends just now.
				require.NoError(t, err)
			}
		}
	})
	return r
}

func itself(dir string) *exec.Cmd { return exec.Command(os.Args[0], "keeper", "test", dir) }

// openedSession opens a session, and makes it if there is none.
func openedSession(t *testing.T, r *Registry, name string) *Kept {
	t.Helper()
	k, err := r.Session(testenv.Context(t), name, &Spec{Dir: "/tmp"})
	require.NoError(t, err)
	t.Cleanup(k.Disconnect)
	return k
}

func runOnce(t *testing.T, k *Kept, script string) error {
	t.Helper()
	_, err := k.Do(testenv.Context(t), command.Request{ID: "one", Script: script})
	return err
}

// entriesOf are the IDs of the keepers of a name, those that have ended included.
func entriesOf(t *testing.T, r *Registry, name string) (ids []string) {
	t.Helper()
	list, err := r.entries()
	require.NoError(t, err)
	for _, e := range list {
		if e.record.Name == name {
			ids = append(ids, e.record.ID)
		}
	}
	return ids
}

func TestAnInterruptedForkForgetsIDs(t *testing.T) {
	r := executing(t)
	k := openedSession(t, r, "s")
	require.NoError(t, runOnce(t, k, "exit 3"))
	require.NoError(t, r.Close(testenv.Context(t), k))
	for _, fresh := range []bool{true, false} { // A fork, and whoever opens the session.
		ctx, cancel := context.WithCancel(testenv.Context(t))
		r.Execute = func(string) *exec.Cmd {
			cancel() // It has just been started then.
			return exec.Command("sleep", "1000")
		}
		_, err := r.open(ctx, "open", "s", &Spec{}, fresh)
		require.ErrorIs(t, err, context.Canceled)
		if fresh {
			assert.Empty(t, entriesOf(t, r, "s"), "not even what the last one was asked for")
		} else {
			require.NoError(t, r.Kill(testenv.Context(t), "s"))
		}
	}
	r.Execute = itself
	k = openedSession(t, r, "s")
	assert.NotNil(t, k.Was)
	require.NoError(t, runOnce(t, k, "exit 3"), "it runs again")
}

// A fork may be interrupted when its keeper answers already, and another client has found that by its name.
func TestAnInterruptedForkKillsASessionThatAnotherClientHas(t *testing.T) {
	r := executing(t)
	k, err := r.look(testenv.Context(t), "s", &Spec{Dir: "/tmp"}, true)
	require.NoError(t, err)
	other := openedSession(t, r, "s")
	require.NoError(t, runOnce(t, other, "x=1"))
	r.discard(k)
	_, err = other.Run(testenv.Context(t), "echo $x")
	require.ErrorIs(t, err, wire.ErrGone, "it is killed")
	require.NoError(t, runOnce(t, openedSession(t, r, "s"), "x=1"), "and its command runs again")
}
