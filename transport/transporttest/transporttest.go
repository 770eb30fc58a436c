// Package transporttest is the conformance suite of transports: what a shell
// promises its callers, checked with a real bash, real programs and real
// kills, over any [transport.Transport].
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, func(*testing.T) transport.Transport { return local.Transport{} })
//	}
//
// A promise has a number, a name and a check: see promises. The numbers are
// those of the project's list of promises, and stay.
//
// Nothing here is decided by a short time. Where a check waits, it waits for an
// event with a bound that only a hang reaches; where a promise is about speed,
// the bound is generous and the true number is logged.
package transporttest

import (
	"os"
	"testing"
	"time"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/transport"
)

// promise is one row of the suite.
type promise struct {
	number int
	name   string
	check  func(*testing.T, suite)

	// alone keeps other checks from running beside this one: it counts what
	// the whole program has, or changes the program's environment.
	alone bool

	// polled runs the check once more without file events: see promise 40.
	polled bool

	// where says that the transport has a part in the promise: it starts and ends
	// processes, passes on signals and streams, or shows files. The other promises are
	// kept by bash and by this side, over whatever transport.
	where bool
}

var promises = []promise{
	{number: 1, name: "BackgroundChildDoesNotHoldTheCall", check: backgroundChild, polled: true, where: true},
	{number: 2, name: "SilentHolderOfTheOutputDoesNotHoldTheCall", check: silentHolder, polled: true},
	{number: 3, name: "NoFixedWaits", check: noFixedWaits, alone: true},
	{number: 4, name: "FastExitsKeepStderrAndStatus", check: fastExits},
	{number: 5, name: "OutputNeitherForgesNorEatsTheStatus", check: forgedStatus, polled: true},
	{number: 6, name: "UnclosedQuoteIsStatusTwo", check: unclosedQuote, polled: true},
	{number: 7, name: "BusyLoopTimesOutAndTheStateStays", check: busyLoop, polled: true, where: true},
	{number: 7, name: "BashSurvivesAStopAtAnyMoment", check: anyMoment},
	{number: 7, name: "ProgramThatIgnoresInterruptsStopsItsCommands", check: deafProgram, alone: true, where: true},
	{number: 8, name: "StoppedScriptNeverRunsItsNextCommand", check: noNextCommand},
	{number: 9, name: "TimeoutEndsTheWholeTree", check: wholeTree, polled: true, where: true},
	{number: 10, name: "StubbornMembersAreKilled", check: stubbornMembers, where: true},
	{number: 11, name: "TimeoutReturnsThePartialOutput", check: partialOutput, polled: true, where: true},
	{number: 12, name: "JobsOfEarlierCommandsSurviveATimeout", check: earlierJobs, polled: true, where: true},
	{number: 13, name: "CancelEndsTheCommandAtOnce", check: cancelled, polled: true, where: true},
	{number: 14, name: "IdleTimeoutIsNotTheTotalOne", check: idleTimeout, polled: true},
	{number: 15, name: "PkillByAWordOfTheCommandSparesTheShell", check: pkill, where: true},
	{number: 16, name: "StatePersists", check: statePersists, polled: true, where: true},
	{number: 17, name: "ExitIsItsStatusAndKeepsTheState", check: exitKeepsState, polled: true, where: true},
	{number: 18, name: "OptionsAndFunctionsCannotBreakTheProtocol", check: hostileOptions},
	{number: 18, name: "DamageToTheSessionsFilesIsMended", check: hostileFiles},
	{number: 19, name: "KilledBashComesBack", check: killedBash, polled: true, where: true},
	{number: 19, name: "BashKilledWhileBusyComesBack", check: killedWhenBusy},
	{number: 20, name: "DeletedDirectoryDoesNotBrickTheSession", check: deletedDir, where: true},
	{number: 21, name: "ParallelCallersNeverMixResults", check: parallelCallers},
	{number: 22, name: "ReadersOfStdinGetEndOfFile", check: endOfFile, polled: true, where: true},
	{number: 24, name: "NoPagerAndNoEditorOpens", check: noPager},
	{number: 25, name: "LongScriptRunsByteForByte", check: longScript, polled: true},
	{number: 26, name: "StartIsBounded", check: boundedStart, where: true},
	{number: 26, name: "StartIsSafeInTheBackgroundOfATerminal", check: backgroundOfTerminal},
	{number: 27, name: "StreamsComeApartAndMergeInOrder", check: streams, polled: true, where: true},
	{number: 28, name: "EndlessOutputIsBounded", check: endlessOutput, alone: true},
	{number: 29, name: "ReadersOfTheCapturesStayBounded", check: grepCaptures, alone: true},
	{number: 30, name: "LongOutputHasHeadTailAndPages", check: longOutput, where: true},
	{number: 31, name: "UTF8IsWholeAtTheCuts", check: wholeRunes},
	{number: 36, name: "DescriptorsAndProcessesStayFlat", check: flat, alone: true, where: true},
	{number: 36, name: "DieWithParentLeavesNoOrphans", check: killedProgram, where: true},
	{number: 38, name: "FilesArePrivateAndRemovedAtClose", check: privateFiles, where: true},
	{number: 38, name: "LeftoversOfACrashAreSwept", check: sweptAtStart, where: true},
	{number: 38, name: "SecretsAreInNeitherArgvNorEnvironment", check: secrets, alone: true, where: true},
	{number: 41, name: "AScriptEndsNeverTheSession", check: scriptEnds, polled: true, where: true},
	{number: 42, name: "UsableAfterEveryDeath", check: everyDeath, where: true},
	{number: 43, name: "DescriptorsAndNamesAreFree", check: freeNames},
	{number: 44, name: "OutputIsWhole", check: wholeOutput, polled: true, where: true},
	{number: 45, name: "WhatLimpetSaysCannotBeImitated", check: imitations},
}

// pollInterval is that of the checks without file events.
const pollInterval = time.Millisecond

// Trait is something in which a transport may differ from a plain process here.
type Trait int

// EndsWithBash means that all processes of a session end with its bash, as in a
// pid namespace, so that a stop that has to replace bash kills nobody besides, and
// a bash that was killed leaves no job to be told of.
const EndsWithBash Trait = iota

// HidesSignals means that a process which a signal has ended looks like one that exited
// with 128+n, as a shell has it: a bash that is killed is no error then, but a command
// that ended bash.
const HidesSignals Trait = 1

// Run runs the suite over the transports that new makes. The directories of
// the tests, below the temp directory, must look the same to what the
// transport starts as they do here. With -short it is what [RunPart] runs.
//
// Some checks need a program of their own that they can kill: they run the
// test binary again, as far as this call. Run it in a test that does nothing
// before it, and not in parallel with others: some checks count.
func Run(t *testing.T, new func(t *testing.T) transport.Transport, traits ...Trait) {
	run(t, !testing.Short(), new, traits)
}

// RunPart is [Run] for a transport that is not the only one: it runs the promises in which
// the transport has a part, and leaves out those that the first one has shown for all.
// With LIMPET_TEST_ALL in the environment, as ./test all has it, it is the whole suite.
func RunPart(t *testing.T, new func(t *testing.T) transport.Transport, traits ...Trait) {
	run(t, testenv.All(), new, traits)
}

func run(t *testing.T, whole bool, new func(t *testing.T) transport.Transport, traits []Trait) {
	if role := os.Getenv(roleVar); role != "" {
		play(t, role, suite{transport: new(t)})
		return
	}
	for _, p := range promises {
		if whole || p.where {
			t.Run(p.name, func(t *testing.T) { p.run(t, suite{transport: new(t), traits: traits}) })
		}
	}
	if !whole {
		return
	}
	// 40. Works by polling where inotify is missing.
	t.Run("WorksByPolling", func(t *testing.T) {
		for _, p := range promises {
			if p.polled {
				t.Run(p.name, func(t *testing.T) { p.run(t, suite{transport: new(t), traits: traits, poll: pollInterval}) })
			}
		}
	})
}

func (p promise) run(t *testing.T, s suite) {
	if !p.alone {
		t.Parallel()
	}
	t.Logf("promise %d", p.number)
	p.check(t, s)
}
