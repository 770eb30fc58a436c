package sessiontest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// stopped checks that a command was stopped once it ran, that the session goes on, and what
// else is said of it.
func stopped(t *testing.T, s session.Handle, res command.Result, err error, is error, code int) {
	t.Helper()
	require.ErrorIs(t, err, is)
	var stop *shell.InterruptError
	require.ErrorAs(t, err, &stop)
	assert.True(t, stop.Outcome.ShellSurvived, "%v", err)
	assert.NotEmpty(t, stop.Outcome.Signalled)
	assert.False(t, stop.NothingRan)
	assert.Equal(t, code, res.ExitCode)
	assert.Equal(t, code, stop.ExitCode())
	assert.Equal(t, "before\n", res.Stdout.String())
	assert.Equal(t, "kept", says(t, s, "echo $x"))
}

const endless = "echo before; sleep 1000; echo never"

func timeoutStops(t *testing.T, s session.Handle) {
	run(t, s, "x=kept")
	res, err := s.Do(testenv.Context(t), command.Request{Script: endless, Timeout: 300 * time.Millisecond})
	stopped(t, s, res, err, shell.ErrTimeout, command.CodeTimeout)
	assert.Regexp(t, `^command stopped: timeout.* \(the shell kept its state, 1 process signalled\)$`, err.Error())
}

func idleTimeoutStops(t *testing.T, s session.Handle) {
	run(t, s, "x=kept")
	res, err := s.Do(testenv.Context(t), command.Request{Script: endless, IdleTimeout: 300 * time.Millisecond})
	stopped(t, s, res, err, shell.ErrIdle, command.CodeTimeout)
}

// Such a command runs in a bash of its own, or in the session's by shell.Options.StdinInShell: its end costs
// the session nothing either way, and is not told as if it did.
func timeoutStopsACommandWithStdin(t *testing.T, s session.Handle) {
	run(t, s, "x=kept")
	res, err := s.Do(testenv.Context(t), command.Request{Script: "cat; sleep 1000", Stdin: strings.NewReader("in"), Timeout: 2 * time.Second})
	require.ErrorIs(t, err, shell.ErrTimeout)
	assert.Regexp(t, `^command stopped: timeout.* \((it ran in a bash of its own|the shell kept its state), \d process(es)? signalled\)$`, err.Error())
	var stop *shell.InterruptError
	require.ErrorAs(t, err, &stop)
	assert.NotEqual(t, stop.Outcome.ShellSurvived, stop.Outcome.OwnBash)
	assert.Nil(t, res.Restart)
	assert.Equal(t, "in", res.Stdout.String())
	assert.Equal(t, "kept", says(t, s, "echo $x"))
}

var errWhy = errors.New("the caller has changed its mind")

func cancelStops(t *testing.T, s session.Handle) {
	run(t, s, "x=kept")
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	var out live
	r := start(ctx, s, command.Request{Script: endless, Stdout: &out})
	testenv.Await(t, "its first line", func() bool { return out.String() != "" })
	cancel(errWhy)
	res, err := r.ended(t)
	stopped(t, s, res, err, context.Canceled, command.CodeInterrupted)
	require.ErrorIs(t, err, errWhy)
	assert.ErrorContains(t, err, "command stopped: the caller has changed its mind (")
}

func deadlineStops(t *testing.T, s session.Handle) {
	run(t, s, "x=kept")
	ctx, cancel := context.WithTimeout(testenv.Context(t), 500*time.Millisecond)
	defer cancel()
	res, err := s.Do(ctx, command.Request{Script: endless})
	stopped(t, s, res, err, context.DeadlineExceeded, command.CodeTimeout)
}

func endedContext(t *testing.T, s session.Handle) {
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	cancel(errWhy)
	res, err := s.Run(ctx, "x=ran")
	require.ErrorIs(t, err, errWhy)
	assert.Equal(t, command.CodeUnknown, res.ExitCode)
	assert.Equal(t, "none", says(t, s, "echo ${x-none}"))
}

func interruptStops(t *testing.T, s session.Handle) {
	run(t, s, "x=kept")
	ran, err := s.Interrupt(testenv.Context(t))
	require.NoError(t, err)
	assert.False(t, ran, "nothing runs")
	var out live
	r := start(testenv.Context(t), s, command.Request{Script: endless, Stdout: &out})
	testenv.Await(t, "its first line", func() bool { return out.String() != "" })
	ran, err = s.Interrupt(testenv.Context(t))
	require.NoError(t, err)
	assert.True(t, ran)
	res, err := r.ended(t)
	stopped(t, s, res, err, shell.ErrInterrupted, command.CodeInterrupted)
}

func handedOver(t *testing.T, s session.Handle) {
	require.ErrorIs(t, s.HandOver(testenv.Context(t)), shell.ErrNothingRuns)
	run(t, s, "x=kept")
	require.NoError(t, s.Checkpoint(testenv.Context(t), "one")) // What was not saved goes with the bash.
	require.ErrorIs(t, s.HandOver(testenv.Context(t)), shell.ErrNothingRuns)
	r := begun(testenv.Context(t), t, s, command.Request{Script: "echo before; sleep 1000"})
	require.NoError(t, s.HandOver(testenv.Context(t)))
	res, err := r.ended(t)
	require.ErrorIs(t, err, shell.ErrHandedOver)
	var background *session.BackgroundError
	require.ErrorAs(t, err, &background)
	assert.NotEmpty(t, background.Job.ID)
	assert.Equal(t, s.Name(), background.Job.Session)
	assert.Equal(t, command.CodeUnknown, res.ExitCode)
	assert.NotNil(t, res.Restart)
	assert.Equal(t, "kept", says(t, s, "echo $x"))
	assert.Equal(t, 1, infoOf(t, s).Jobs)
}
