package keeper

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

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

func TestAnInterruptedStartForgetsNothing(t *testing.T) {
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
			assert.Equal(t, []string{k.Record.ID}, entriesOf(t, r, "s"), "nothing is left of what was started in vain")
		} else {
			require.NoError(t, r.Kill(testenv.Context(t), "s"))
		}
	}
	r.Execute = itself
	k = openedSession(t, r, "s")
	assert.NotNil(t, k.Was)
	require.Equal(t, &wire.EndedError{Code: 3}, runOnce(t, k, "exit 3"))
	assert.Equal(t, []string{k.Record.ID}, entriesOf(t, r, "s"))
}

// A fork may be interrupted when its keeper answers already, and another client has found that by its name.
func TestAnInterruptedForkLeavesASessionThatAnotherClientHas(t *testing.T) {
	r := executing(t)
	k, err := r.look(testenv.Context(t), "s", &Spec{Dir: "/tmp"}, true)
	require.NoError(t, err)
	other := openedSession(t, r, "s")
	require.NoError(t, runOnce(t, other, "x=1"))
	r.giveUp(k)
	res, err := other.Run(testenv.Context(t), "echo $x")
	require.NoError(t, err)
	assert.Equal(t, "1\n", res.Stdout.String())

	require.NoError(t, r.Close(testenv.Context(t), other))
	r.giveUp(k)
	require.Equal(t, &wire.EndedError{Code: 0}, runOnce(t, openedSession(t, r, "s"), "x=1"), "nor are its ids forgotten when it has ended")
}

// Whoever gives up a keeper may be killed before it has killed that.
func TestAKeeperThatWasGivenUpDoesNotAnswer(t *testing.T) {
	r := executing(t)
	r.Execute = func(dir string) *exec.Cmd {
		first, err := endStart(dir)
		assert.True(t, first)
		assert.NoError(t, err)
		return itself(dir)
	}
	_, err := r.Session(testenv.Context(t), "s", &Spec{})
	require.ErrorContains(t, err, errGivenUp.Error())
	r.Execute = itself
	assert.Contains(t, openedSession(t, r, "s").Was.Why, errGivenUp.Error())
}

// Whenever a start is interrupted, either nothing is left of it, or the session is there.
func TestAStartIsInterruptedAtRandomMoments(t *testing.T) {
	r := executing(t)
	k := openedSession(t, r, "s")
	require.NoError(t, runOnce(t, k, "exit 3"))
	require.NoError(t, r.Close(testenv.Context(t), k))
	left := 0
	rounds := testenv.Repeats(5, 20, 200)
	for i := range rounds {
		ctx, cancel := context.WithTimeout(testenv.Context(t), time.Duration(i)*100*time.Millisecond/time.Duration(rounds))
		one, err := r.open(ctx, "open", "s", &Spec{}, true)
		cancel()
		if err == nil {
			one.Disconnect()
		}
		there, err := r.Session(testenv.Context(t), "s", nil)
		if err == nil {
			left++
			require.Equal(t, &wire.EndedError{Code: 3}, runOnce(t, there, "exit 3"))
			require.NoError(t, r.Close(testenv.Context(t), there))
			there.Disconnect()
		} else {
			require.ErrorIs(t, err, session.ErrNotFound)
		}
		dirs, err := filepath.Glob(filepath.Join(r.dir, "*", recordFile))
		require.NoError(t, err)
		assert.NotEmpty(t, dirs)
	}
	t.Logf("of %d starts %d were not given up", rounds, left)
	require.Equal(t, &wire.EndedError{Code: 3}, runOnce(t, openedSession(t, r, "s"), "exit 3"))
}
