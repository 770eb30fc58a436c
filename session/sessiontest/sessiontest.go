// Package sessiontest is the conformance suite of sessions: what a [session.Handle] promises,
// checked with a real bash, wherever the session is.
//
//	func TestSessions(t *testing.T) {
//		sessiontest.Run(t, func(t *testing.T) session.Handle { ... })
//	}
//
// Nothing here is decided by a short time: where a check waits, it waits for an event, with a
// bound that only a hang reaches.
package sessiontest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

// Run checks all promises, each with a session of its own. Open returns one that nobody has
// used, with the name "s"; it ends with the test. The promises that are named after it are not
// kept yet.
func Run(t *testing.T, open func(t *testing.T) session.Handle, notYet ...string) {
	check(t, open, false, notYet)
}

// RunCore is [Run] for sessions that differ little from some that keep all promises, as by the way that leads to them: it checks the
// core ones. In ./test all it is Run.
func RunCore(t *testing.T, open func(t *testing.T) session.Handle, notYet ...string) {
	check(t, open, !testenv.All(), notYet)
}

func check(t *testing.T, open func(t *testing.T) session.Handle, onlyCore bool, notYet []string) {
	for _, promise := range promises {
		if onlyCore && !promise.core || slices.Contains(notYet, promise.name) {
			continue
		}
		t.Run(promise.name, func(t *testing.T) {
			t.Parallel()
			promise.check(t, open(t))
		})
	}
}

// Promises are core ones, or more.
const core, more = true, false

var promises = []struct {
	name  string
	check func(t *testing.T, s session.Handle)
	core  bool
}{
	{"StateStays", stateStays, core},
	{"TheResultIsWhole", resultIsWhole, core},
	{"SignalsAreExitCodes", signalsAreExitCodes, more},
	{"LeftoversAreNamed", leftoversAreNamed, more},
	{"RequestsHoldForOneCommand", requestsHoldForOne, core},
	{"WhatCannotRunIsRefused", cannotRun, core},
	{"ADirectoryThatIsNotThere", noDirectory, more},
	{"ManyCallersTakeTurns", manyCallers, more},
	{"ATurnThatDoesNotComeIsBusy", busy, more},
	{"ExitIsAStatusAndTheSessionGoesOn", exitIsAStatus, more},
	{"AKilledBashComesBack", killedBash, core},

	{"OutputComesWhileTheCommandRuns", outputComesLive, core},
	{"AllBytesOfBothStreamsArrive", allBytesArrive, core},
	{"LongOutputIsHeadAndTail", longOutput, more},
	{"StderrIsMerged", stderrIsMerged, more},
	{"AWriterThatFailsCostsTheResultNothing", writerFails, more},
	{"AWriterThatTakesLessHasFailed", writerTakesLess, more},
	{"AWriterThatBlocksHoldsUpNobodyElse", writerBlocks, more},
	{"StdinArrivesWhole", stdinArrives, core},
	{"StdinThatNobodyReadsIsLeft", stdinIsLeft, more},
	{"StdinThatFailsIsTold", stdinFails, more},
	{"AnEndlessStdinEndsWithTheCommand", endlessStdin, more},

	{"EventsAreSeen", eventsAreSeen, core},
	{"ReceiptsAreSeen", receiptsAreSeen, more},
	{"ALongScriptIsShownInPart", longScript, more},
	{"WhatIsRefusedIsNoEvent", whatIsRefusedIsNoEvent, more},
	{"NoticesAreTold", noticesAreTold, core},

	{"TimeoutStops", timeoutStops, core},
	{"IdleTimeoutStops", idleTimeoutStops, more},
	{"TimeoutStopsACommandWithStdin", timeoutStopsACommandWithStdin, more},
	{"ACancelledContextStops", cancelStops, core},
	{"ADeadlineStops", deadlineStops, more},
	{"AContextThatHasEndedRunsNothing", endedContext, more},
	{"InterruptStops", interruptStops, core},
	{"HandedOverACommandIsAJob", handedOver, core},

	{"JobsStartInIt", jobsStartInIt, core},
	{"JobsAreTalkedTo", jobsAreTalkedTo, more},
	{"JobsAreStopped", jobsAreStopped, more},
	{"JobsOnTerminals", jobsOnTerminals, more},
	{"ErrorsOfJobsAreTheSame", jobsErrors, more},
	{"BytesOfJobsArrive", jobsPrintBytes, more},

	{"CheckpointsComeBack", checkpoints, core},
	{"ResetIsTheBeginning", reset, more},
	{"AForkIsSeparate", fork, core},
	{"InfoTells", info, core},
	{"CloseEndsIt", closeEnds, core},
}

// run runs a script that must work.
func run(t *testing.T, s session.Handle, script string) command.Result {
	t.Helper()
	res, err := s.Run(testenv.Context(t), script)
	require.NoError(t, err, script)
	return res
}

// says is what a script prints, without the last newline.
func says(t *testing.T, s session.Handle, script string) string {
	t.Helper()
	return strings.TrimSuffix(run(t, s, script).Stdout.String(), "\n")
}

// running is a request that is under way.
type running struct {
	res  command.Result
	err  error
	done chan struct{}
}

// start runs a request beside the test.
func start(ctx context.Context, s session.Handle, req command.Request) *running {
	r := &running{done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.res, r.err = s.Do(ctx, req)
	}()
	return r
}

// ended waits for what came of it.
func (r *running) ended(t *testing.T) (command.Result, error) {
	t.Helper()
	select {
	case <-r.done:
	case <-testenv.Context(t).Done():
		require.FailNow(t, "it does not end")
	}
	return r.res, r.err
}

// begun starts a script behind a line that says that it has begun, and waits for that.
func begun(ctx context.Context, t *testing.T, s session.Handle, req command.Request) *running {
	t.Helper()
	file := testenv.TempDir(t) + "/begun"
	req.Script = "echo >" + file + "\n" + req.Script
	r := start(ctx, s, req)
	testenv.AwaitFile(t, file)
	return r
}

func infoOf(t *testing.T, s session.Handle) session.Info {
	t.Helper()
	info, err := s.Info(testenv.Context(t))
	require.NoError(t, err)
	assert.Equal(t, s.Name(), info.Name)
	return info
}
