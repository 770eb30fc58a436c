package interrupt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var errWhy = errors.New("why")

func TestStopReachesAllBelowAndNobodyAbove(t *testing.T) {
	root := interrupt.New()
	child, sibling := root.Child(), root.Child()
	grandchild := child.Child()
	child.Stop(errWhy)
	assert.ErrorIs(t, child.Reason(), errWhy)
	assert.ErrorIs(t, grandchild.Reason(), errWhy)
	assert.NoError(t, root.Reason())
	assert.NoError(t, sibling.Reason())
	child.Clear()
	assert.NoError(t, grandchild.Reason())
	root.Stop(nil)
	assert.ErrorIs(t, grandchild.Reason(), interrupt.ErrInterrupted)
}

func TestTheFirstReasonStays(t *testing.T) {
	var s interrupt.Source
	s.Stop(errWhy)
	s.Stop(errors.New("later"))
	assert.ErrorIs(t, s.Reason(), errWhy)
}

func TestContextIsCancelledWithTheReason(t *testing.T) {
	root := interrupt.New()
	ctx, cancel := root.Child().Context(context.Background())
	defer cancel()
	require.NoError(t, ctx.Err())
	root.Stop(errWhy)
	<-ctx.Done()
	assert.ErrorIs(t, ctx.Err(), context.Canceled)
	root.Clear()
	assert.ErrorIs(t, context.Cause(ctx), errWhy, "what was interrupted stays interrupted")
}

func TestWhatIsStartedAfterClearRuns(t *testing.T) {
	s := interrupt.New()
	s.Stop(errWhy)
	stopped, cancel := s.Context(context.Background())
	defer cancel()
	<-stopped.Done()
	s.Clear()
	ctx, cancel := s.Context(context.Background())
	defer cancel()
	assert.NoError(t, ctx.Err())
	s.Clear() // It is not stopped: its contexts are left alone.
	s.Stop(errWhy)
	<-ctx.Done()
	assert.ErrorIs(t, context.Cause(ctx), errWhy)
}

func TestAContextIsCancelledWhenStopReturns(t *testing.T) {
	for range 100 {
		root := interrupt.New()
		ctx, cancel := root.Child().Context(context.Background())
		root.Stop(errWhy)
		require.Error(t, ctx.Err())
		require.ErrorIs(t, context.Cause(ctx), errWhy)
		cancel()
	}
}

func TestANilSourceNeverStopsAnything(t *testing.T) {
	var s *interrupt.Source
	assert.NoError(t, s.Reason())
	ctx, cancel := s.Context(context.Background())
	assert.NoError(t, ctx.Err())
	cancel()
	cancel()
	assert.ErrorIs(t, ctx.Err(), context.Canceled)
}

func TestTheCallersContextStillCounts(t *testing.T) {
	parent, stop := context.WithCancelCause(context.Background())
	ctx, cancel := interrupt.New().Context(parent)
	defer cancel()
	stop(errWhy)
	<-ctx.Done()
	assert.ErrorIs(t, context.Cause(ctx), errWhy)
}

func TestManyGoroutinesMayUseASource(t *testing.T) {
	root := interrupt.New()
	var users sync.WaitGroup
	for i := range 32 {
		s := root.Child()
		users.Go(func() {
			for range 50 {
				ctx, cancel := s.Context(context.Background())
				switch i % 4 {
				case 0:
					s.Stop(errWhy)
					<-ctx.Done()
				case 1:
					root.Clear()
				case 2:
					root.Stop(errWhy)
				}
				_ = s.Reason()
				s.Clear()
				cancel()
			}
		})
	}
	users.Wait()
}

func TestGraceIsTheSumOfTheSteps(t *testing.T) {
	kill := interrupt.DefaultLadder[len(interrupt.DefaultLadder)-1].Grace
	assert.Equal(t, interrupt.DefaultLadder.Grace(), interrupt.Ladder(nil).Grace())
	assert.Equal(t, 5*time.Second, interrupt.Ladder{{Signal: syscall.SIGINT, Grace: 2 * time.Second}, {Signal: syscall.SIGKILL, Grace: 3 * time.Second}}.Grace())
	assert.Equal(t, 2*time.Second+kill, interrupt.Ladder{{Signal: syscall.SIGINT, Grace: 2 * time.Second}}.Grace(), "a SIGKILL follows")
}

func TestOutcomeIsOneLine(t *testing.T) {
	p := command.Process{PID: 1}
	for _, test := range []struct {
		outcome interrupt.Outcome
		want    string
	}{
		{interrupt.Outcome{}, "the shell had to be replaced"},
		{interrupt.Outcome{ShellSurvived: true, Signalled: []command.Process{p}}, "the shell kept its state, 1 process signalled"},
		{interrupt.Outcome{OwnBash: true, Killed: []command.Process{p}}, "it ran in a bash of its own, 1 process needed SIGKILL"},
		{interrupt.Outcome{Signalled: []command.Process{p, p, p}, Killed: []command.Process{p, p}, Left: []command.Process{p}},
			"the shell had to be replaced, 3 processes signalled, 2 processes needed SIGKILL, 1 process still alive"},
	} {
		assert.Equal(t, test.want, test.outcome.String())
	}
}

func TestErrorIsWhatStoppedTheCommand(t *testing.T) {
	live := context.Background()
	cancelled, cancel := context.WithCancel(live)
	cancel()
	caused, cause := context.WithCancelCause(live)
	cause(errWhy)
	late, stop := context.WithDeadline(live, time.Unix(0, 0))
	defer stop()
	lateCause, stop := context.WithDeadlineCause(live, time.Unix(0, 0), errWhy)
	defer stop()
	src := interrupt.New()
	fired, free := src.Context(live)
	defer free()
	src.Stop(errWhy)
	<-fired.Done()

	all := []error{context.Canceled, context.DeadlineExceeded, interrupt.ErrTimeout, interrupt.ErrIdle, interrupt.ErrInterrupted, interrupt.ErrClosed, errWhy}
	for _, test := range []struct {
		name  string
		ctx   context.Context
		cause error
		is    []error
		code  int
	}{
		{"timeout", live, fmt.Errorf("%w: long", interrupt.ErrTimeout), []error{interrupt.ErrTimeout}, 124},
		{"idle", live, fmt.Errorf("%w: silent", interrupt.ErrIdle), []error{interrupt.ErrIdle}, 124},
		{"Interrupt", live, interrupt.ErrInterrupted, []error{interrupt.ErrInterrupted}, 130},
		{"a Source", live, context.Cause(fired), []error{interrupt.ErrInterrupted, errWhy}, 130},
		{"Close", live, interrupt.ErrClosed, []error{interrupt.ErrClosed}, 130},
		{"cancelled", cancelled, context.Cause(cancelled), []error{context.Canceled}, 130},
		{"cancelled with a cause", caused, context.Cause(caused), []error{context.Canceled, errWhy}, 130},
		{"deadline", late, context.Cause(late), []error{context.DeadlineExceeded}, 124},
		{"deadline with a cause", lateCause, context.Cause(lateCause), []error{context.DeadlineExceeded, errWhy}, 124},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := fmt.Errorf("wrapped: %w", interrupt.NewError(test.ctx, test.cause, interrupt.Outcome{ShellSurvived: true}))
			for _, target := range all {
				assert.Equal(t, slices.Contains(test.is, target), errors.Is(err, target), "%v", target)
			}
			stopped, ok := errors.AsType[*interrupt.Error](err)
			require.True(t, ok)
			assert.Equal(t, test.code, stopped.ExitCode())
			assert.True(t, stopped.Outcome.ShellSurvived)
		})
	}
}
