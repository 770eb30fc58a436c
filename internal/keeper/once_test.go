package keeper_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// once asks for a command with an id.
func once(t *testing.T, k *keeper.Kept, id, script string) (command.Result, error) {
	t.Helper()
	return k.Do(testenv.Context(t), command.Request{ID: id, Script: script})
}

// killed kills the keeper of a session, and waits until it is dead.
func killed(t *testing.T, r *keeper.Registry, k *keeper.Kept) {
	t.Helper()
	require.NoError(t, syscall.Kill(pidOf(t, r, k), syscall.SIGKILL))
	testenv.Await(t, "the keeper to be dead", func() bool {
		_, err := r.Session(testenv.Context(t), k.Record.Name, nil)
		return errors.Is(err, session.ErrNotFound)
	})
}

func TestACommandWithAnIDRunsOnce(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	file := filepath.Join(testenv.TempDir(t), "ran")
	k := kept(t, r, "s", nil)
	script := "echo ran >>" + file + "; cat " + file + "; exit 3"
	for range 2 {
		for _, k := range []*keeper.Kept{k, kept(t, r, "s", nil)} {
			res, err := once(t, k, "one", script)
			require.NoError(t, err)
			assert.Equal(t, "ran\n", res.Stdout.String())
			assert.Equal(t, 3, res.ExitCode)
		}
	}
	_, err := once(t, k, "one", "echo other")
	require.ErrorIs(t, err, wire.ErrOtherCommand)
	for _, id := range []string{"a b", "../x", strings.Repeat("a", 65)} {
		_, err := once(t, k, id, "true")
		require.ErrorIs(t, err, command.ErrID, "%q", id)
	}

	for range 2 { // Keepers that follow.
		killed(t, r, k)
		k = kept(t, r, "s", nil)
		_, err = once(t, k, "one", script)
		require.Equal(t, &wire.EndedError{Code: 3}, err)
		_, err = once(t, k, "one", "echo other")
		require.ErrorIs(t, err, wire.ErrOtherCommand)
	}
	require.NoError(t, r.Close(testenv.Context(t), k))
	k = kept(t, r, "s", nil)
	_, err = once(t, k, "one", script)
	require.Equal(t, &wire.EndedError{Code: 3}, err, "also behind one that was closed")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(b))
	b, err = os.ReadFile(filepath.Join(r.Dir(), k.Record.ID, "journal"))
	require.NoError(t, err)
	assert.NotContains(t, string(b), "echo")

	other := kept(t, r, "other", nil)
	_, err = once(t, other, "one", "echo other")
	require.NoError(t, err, "an id belongs to its session")
}

func TestACommandWhoseKeeperDiedIsNotRunAgain(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "s", nil)
	begun := filepath.Join(testenv.TempDir(t), "begun")
	script := "echo >>" + begun + "; sleep 1000"
	done := make(chan error, 1)
	go func() {
		_, err := once(t, k, "long", script)
		done <- err
	}()
	testenv.AwaitFile(t, begun)
	killed(t, r, k)
	err := <-done
	require.ErrorIs(t, err, wire.ErrGone)
	require.ErrorIs(t, err, wire.ErrMayHaveRun)
	for range 2 {
		k = kept(t, r, "s", nil)
		_, err = once(t, k, "long", script)
		require.ErrorIs(t, err, wire.ErrMayHaveRun)
		killed(t, r, k)
	}
	b, err := os.ReadFile(begun)
	require.NoError(t, err)
	assert.Equal(t, "\n", string(b))
}

// Where nothing ran the command may be asked for again, and runs.
func TestACommandThatDidNotRunMayBeAskedForAgain(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "s", nil)
	dir := testenv.TempDir(t)
	go func() {
		_, _ = k.Run(testenv.Context(t), "echo >"+dir+"/begun; while [ ! -e "+dir+"/go ]; do sleep 0.01; done")
	}()
	testenv.AwaitFile(t, dir+"/begun")
	req := command.Request{ID: "one", Script: "echo ran >>" + dir + "/ran", TurnTimeout: 10 * time.Millisecond}
	for range 2 {
		_, err := k.Do(testenv.Context(t), req)
		require.ErrorIs(t, err, shell.ErrBusy)
	}
	killed(t, r, k)
	k = kept(t, r, "s", nil)
	req.Dir = dir + "/none"
	for range 2 {
		_, err := k.Do(testenv.Context(t), req)
		require.ErrorAs(t, err, new(*shell.DirError))
	}
	require.NoError(t, os.Mkdir(req.Dir, 0o700))
	for range 2 {
		res, err := k.Do(testenv.Context(t), req)
		require.NoError(t, err)
		assert.Equal(t, 0, res.ExitCode)
	}
	b, err := os.ReadFile(dir + "/ran")
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(b))
}

// Keepers are killed at random moments, and each command is asked for until there is an answer.
func TestNoIDRunsTwiceWheneverItsKeeperDies(t *testing.T) {
	testenv.Slow(t)
	r := registry(t, testenv.TempDir(t))
	file := filepath.Join(testenv.TempDir(t), "ran")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	answers := make(map[string]int)
	for round := range testenv.Repeats(5, 10, 300) {
		id := fmt.Sprint("round-", round)
		req := command.Request{ID: id, Script: fmt.Sprintf("echo %s. >>%s; sleep 0.00%d; exit 4", id, file, rand.IntN(9))}
		kill := func(k *keeper.Kept) { _ = syscall.Kill(pidOf(t, r, k), syscall.SIGKILL) } // It may be dead.
		answer := ""
		for try := 0; answer == ""; try++ {
			k, err := r.Session(testenv.Context(t), "s", &keeper.Spec{})
			require.NoError(t, err)
			done, also := make(chan struct{}), make(chan struct{})
			var res command.Result
			go func() {
				defer close(done)
				res, err = k.Do(testenv.Context(t), req)
			}()
			go func() { // Somebody else asks as well.
				defer close(also)
				if k, err := r.Session(testenv.Context(t), "s", &keeper.Spec{}); err == nil {
					_, _ = k.Do(testenv.Context(t), req) // It counts how often it runs.
					k.Disconnect()
				}
			}()
			if try == 0 {
				time.Sleep(time.Duration(rand.IntN(30000)) * time.Microsecond)
				kill(k)
			}
			<-done
			<-also
			ended := new(wire.EndedError)
			switch {
			case err == nil:
				answer = "result"
				assert.Equal(t, 4, res.ExitCode)
			case errors.As(err, &ended):
				answer = "ended"
				assert.Equal(t, 4, ended.Code)
			case errors.Is(err, wire.ErrGone): // It is asked for again.
			case errors.Is(err, wire.ErrMayHaveRun):
				answer = "unknown"
			default:
				require.NoError(t, err)
			}
			k.Disconnect()
		}
		answers[answer]++
		time.Sleep(time.Millisecond)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		ran := strings.Count(string(b), id+".\n")
		assert.LessOrEqual(t, ran, 1, id)
		if answer != "unknown" {
			assert.Equal(t, 1, ran, "%s: %s", id, answer)
		}
	}
	t.Log("answers:", answers)
}

// A keeper writes down where its session is only when that changes: one that was quiet for a week is not one that has ended a week ago.
func TestIDsOutliveAKeeperThatWasQuietForAWeek(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "s", nil)
	says(t, k, "cd /usr")
	_, err := once(t, k, "one", "exit 3")
	require.NoError(t, err)
	weekAgo := time.Now().Add(-8 * 24 * time.Hour)
	require.NoError(t, os.Chtimes(filepath.Join(r.Dir(), k.Record.ID, "now"), weekAgo, weekAgo))
	killed(t, r, k)
	kept(t, r, "other", nil) // Who starts another one sweeps.
	k = kept(t, r, "s", nil)
	require.NotNil(t, k.Was)
	assert.Equal(t, "ended when its keeper was killed; it was in /usr", k.Was.String())
	_, err = once(t, k, "one", "exit 3")
	require.Equal(t, &wire.EndedError{Code: 3}, err)
}
