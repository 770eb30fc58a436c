package shell_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// handOver runs a script until there is a file "ready", and has it handed over.
func handOver(t *testing.T, sh *shell.PersistentShell, dir, script string) (command.Result, *shell.Running) {
	t.Helper()
	done := make(chan answer, 1)
	go func() {
		res, err := sh.Run(context.Background(), script)
		done <- answer{res, err}
	}()
	awaitFile(t, filepath.Join(dir, "ready"))
	require.NoError(t, sh.HandOver())
	got := await(t, done)
	return got.res, handedOver(t, got.err)
}

func handedOver(t *testing.T, err error) *shell.Running {
	t.Helper()
	e, ok := errors.AsType[*shell.HandedOverError](err)
	require.True(t, ok, "%v", err)
	t.Cleanup(func() { _ = e.Command.Close() })
	return e.Command
}

// all reads what a handed over command prints, until its end.
func all(t *testing.T, r *shell.Running) string {
	t.Helper()
	b, err := io.ReadAll(r.Output())
	require.NoError(t, err)
	return string(b)
}

func TestACommandIsHandedOverAndTheSessionGoesOn(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	sh := start(t, &shell.Options{Dir: dir})
	run(t, sh, "cd /; x=kept; f() { echo function; }")
	res, r := handOver(t, sh, dir, "echo before; cd "+dir+"; x=changed; echo >ready; until [[ -e go ]]; do :; done; echo after; echo err >&2; exit 7")
	assert.Equal(t, "before\n", res.Stdout.String())
	assert.Equal(t, command.CodeUnknown, res.ExitCode)
	require.NotNil(t, res.Restart)
	assert.Contains(t, res.Restart.Reason, "handed over")
	assert.Contains(t, res.Restart.Restored, "variables")

	// The shell is free, as it was before the command.
	assert.Equal(t, "kept / function", says(t, sh, "echo $x $PWD $(f)"))
	assert.ErrorIs(t, sh.HandOver(), shell.ErrNothingRuns)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	assert.Equal(t, "before\nafter\nerr\n", all(t, r))
	<-r.Done()
	assert.Equal(t, 7, r.Exit().Code)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	assert.Equal(t, "kept", says(t, sh, "echo $x"), "what it changed is its own")
}

func TestAtItsTimeoutACommandIsHandedOverIfItIsToBe(t *testing.T) {
	testenv.Slow(t)
	dir := t.TempDir()
	sh := start(t, &shell.Options{Dir: dir})
	res, err := sh.Do(t.Context(), command.Request{Script: "v=1; echo out; until [[ -e go ]]; do sleep 0.01; done; echo late", Timeout: 500 * time.Millisecond, HandOver: true})
	assert.ErrorIs(t, err, shell.ErrTimeout)
	r := handedOver(t, err)
	assert.Equal(t, "out\n", res.Stdout.String())
	assert.Equal(t, "free", says(t, sh, "echo free"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	assert.Equal(t, "out\nlate\n", all(t, r))
	<-r.Done()
	assert.Zero(t, r.Exit().Code)

	_, err = sh.Do(t.Context(), command.Request{Script: "sleep 50", IdleTimeout: 50 * time.Millisecond, HandOver: true})
	assert.ErrorIs(t, err, shell.ErrIdle)
	require.NoError(t, handedOver(t, err).Close())

	// One that is in time is not.
	res, err = sh.Do(t.Context(), command.Request{Script: "exit 3", Timeout: testenv.Patience, HandOver: true})
	require.NoError(t, err)
	assert.Equal(t, 3, res.ExitCode)
	_, err = sh.Do(t.Context(), command.Request{Script: "cat", Stdin: strings.NewReader("x"), HandOver: true})
	assert.ErrorIs(t, err, command.ErrHandOver)
}

func TestAHandedOverCommandCanBeStopped(t *testing.T) {
	testenv.NeedProc(t)
	dir := t.TempDir()
	sh := start(t, &shell.Options{Dir: dir})
	run(t, sh, "sleep 1007 & echo $! >earlier")
	_, r := handOver(t, sh, dir, "(setsid sleep 1008 & echo $! >escaped); echo >ready; sleep 1009; touch X")
	run(t, sh, "sleep 1010 & echo $! >later")
	outcome := r.Stop(nil)
	assert.NotEmpty(t, outcome.Signalled)
	assert.Empty(t, outcome.Left)
	<-r.Done()
	assert.Equal(t, 130, r.Exit().Code)
	assert.Empty(t, r.Stop(nil).Signalled, "it has ended")
	assert.NoFileExists(t, filepath.Join(dir, "X"))
	assert.False(t, testenv.Alive(pidIn(t, dir, "escaped")))
	assert.True(t, testenv.Alive(pidIn(t, dir, "earlier")), "a job of the session is not the command's")
	assert.True(t, testenv.Alive(pidIn(t, dir, "later")))
	require.NoError(t, r.Close())
	require.NoError(t, sh.Close())
	assert.False(t, testenv.Alive(pidIn(t, dir, "earlier")))
	assert.False(t, testenv.Alive(pidIn(t, dir, "later")))
}

// The shell may be closed before the command, or behind it.
func TestAHandedOverCommandOutlivesItsShell(t *testing.T) {
	testenv.NeedProc(t)
	dir := t.TempDir()
	sh := start(t, &shell.Options{Dir: dir})
	_, r := handOver(t, sh, dir, "sleep 1011 & echo $! >child; echo >ready; until [[ -e go ]]; do sleep 0.01; done; echo late")
	require.NoError(t, sh.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	assert.Equal(t, "late\n", all(t, r))
	require.NoError(t, r.Close())
	assert.False(t, testenv.Alive(pidIn(t, dir, "child")), "nobody else is there for it")
}

func TestCloseOfAHandedOverCommandEndsIt(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := t.TempDir()
	sh := start(t, &shell.Options{Dir: dir})
	_, r := handOver(t, sh, dir, "trap '' INT TERM; sleep 1012 & echo $! >child; echo >ready; while :; do sleep 1; done")
	require.NoError(t, r.Close())
	<-r.Done()
	assert.Equal(t, "well", says(t, sh, "echo well"))
}

func TestMuchOutputIsHandedOverWithoutItsMiddle(t *testing.T) {
	dir := t.TempDir()
	sh := start(t, &shell.Options{Dir: dir, OutputLimit: 4096})
	_, r := handOver(t, sh, dir, "seq 1 1000000; echo >ready; until [[ -e go ]]; do sleep 0.01; done; echo last")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	got := all(t, r)
	assert.True(t, strings.HasPrefix(got, "1\n2\n"))
	assert.True(t, strings.HasSuffix(got, "\n1000000\nlast\n"), "%q", got[max(len(got)-50, 0):])
	assert.Contains(t, got, "omitted")
	assert.Less(t, len(got), 16<<10)
}

// pidIn is what a script has written into a file.
func pidIn(t *testing.T, dir, file string) int {
	t.Helper()
	pid, err := strconv.Atoi(testenv.AwaitFile(t, filepath.Join(dir, file)))
	require.NoError(t, err)
	return pid
}

// Who waits no longer than so long has the command handed over; its Timeout is then to be kept by
// who takes it.
func TestACommandIsHandedOverAfterATime(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	sh := start(t, nil)
	run(t, sh, "x=kept")
	for _, timeout := range []time.Duration{0, time.Minute, -1} {
		res, err := sh.Do(testenv.Context(t), command.Request{Script: "echo begun; sleep 1000", HandOverAfter: 100 * time.Millisecond, Timeout: timeout})
		r := handedOver(t, err)
		assert.Equal(t, "begun\n", res.Stdout.String())
		require.ErrorIs(t, err, shell.ErrHandedOver)
		if timeout > 0 {
			assert.InDelta(t, time.Minute, r.Left(), float64(20*time.Second))
		} else {
			assert.Zero(t, r.Left(), timeout)
		}
		assert.Equal(t, "kept", says(t, sh, "echo $x"))
	}
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "sleep 1000", HandOverAfter: time.Minute, Timeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, shell.ErrTimeout)
	assert.Equal(t, 124, res.ExitCode)
	res, err = sh.Do(testenv.Context(t), command.Request{Script: "echo quick", HandOverAfter: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, "quick\n", res.Stdout.String())
	_, err = sh.Do(testenv.Context(t), command.Request{Script: "cat", Stdin: strings.NewReader(""), HandOverAfter: time.Minute})
	require.ErrorIs(t, err, command.ErrHandOver)
}

func TestARequestWaitsNoLongerThanItWantsForItsTurn(t *testing.T) {
	testenv.Slow(t)
	sh := start(t, nil)
	done := begin(t, sh, testenv.Context(t), "until [[ -e go ]]; do sleep 0.01; done")
	for range 2 {
		res, err := sh.Do(testenv.Context(t), command.Request{Script: "touch ran", TurnTimeout: 50 * time.Millisecond})
		require.ErrorIs(t, err, shell.ErrBusy)
		assert.ErrorContains(t, err, "nothing ran")
		assert.Equal(t, command.CodeUnknown, res.ExitCode)
	}
	require.NoError(t, os.WriteFile(filepath.Join(sh.Dir(), "go"), nil, 0o600))
	require.NoError(t, await(t, done).err)
	res, err := sh.Do(testenv.Context(t), command.Request{Script: "sleep 0.2; ls", TurnTimeout: 50 * time.Millisecond})
	require.NoError(t, err, "it bounds the wait alone")
	assert.NotContains(t, res.Stdout.String(), "ran")
}
