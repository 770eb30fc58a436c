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

	// part says which part in the promise the transport has.
	part part

	// ofShells: the check asks for a shell of this program's, by its options, or for a program of its own that
	// has one. A session that is kept by another program has neither.
	ofShells bool
}

// part is how much a promise depends on the transport, and so where it is checked.
type part int

const (
	// none: bash and this side keep the promise, over whatever transport. It is checked
	// over the local one.
	none part = iota

	// some: the transport starts and ends processes, passes signals and streams on, or
	// shows files. The promise is checked over every transport.
	some

	// core: a promise about stops, the state, or what is left behind, in which a fault of a
	// transport, or of the file events, shows first. It is also checked for another user
	// of a sandbox, and without file events (see promise 40).
	core
)

var promises = []promise{
	{number: 1, name: "BackgroundChildDoesNotHoldTheCall", check: backgroundChild, part: core},
	{number: 2, name: "SilentHolderOfTheOutputDoesNotHoldTheCall", check: silentHolder},
	{number: 3, name: "NoFixedWaits", check: noFixedWaits, alone: true, ofShells: true},
	{number: 4, name: "FastExitsKeepStderrAndStatus", check: fastExits},
	{number: 5, name: "OutputNeitherForgesNorEatsTheStatus", check: forgedStatus},
	{number: 6, name: "UnclosedQuoteIsStatusTwo", check: unclosedQuote},
	{number: 7, name: "BusyLoopTimesOutAndTheStateStays", check: busyLoop, part: core},
	{number: 7, name: "BashSurvivesAStopAtAnyMoment", check: anyMoment},
	{number: 7, name: "ProgramThatIgnoresInterruptsStopsItsCommands", check: deafProgram, alone: true, part: some, ofShells: true},
	{number: 8, name: "StoppedScriptNeverRunsItsNextCommand", check: noNextCommand, part: core},
	{number: 9, name: "TimeoutEndsTheWholeTree", check: wholeTree, part: core},
	{number: 10, name: "StubbornMembersAreKilled", check: stubbornMembers, part: some},
	{number: 11, name: "TimeoutReturnsThePartialOutput", check: partialOutput, part: some},
	{number: 12, name: "JobsOfEarlierCommandsSurviveATimeout", check: earlierJobs, part: some},
	{number: 13, name: "CancelEndsTheCommandAtOnce", check: cancelled, part: core},
	{number: 14, name: "IdleTimeoutIsNotTheTotalOne", check: idleTimeout},
	{number: 15, name: "PkillByAWordOfTheCommandSparesTheShell", check: pkill, part: some},
	{number: 16, name: "StatePersists", check: statePersists, part: some},
	{number: 17, name: "ExitIsItsStatusAndKeepsTheState", check: exitKeepsState, part: core},
	{number: 18, name: "OptionsAndFunctionsCannotBreakTheProtocol", check: hostileOptions, ofShells: true},
	{number: 18, name: "DamageToTheSessionsFilesIsMended", check: hostileFiles, part: core, ofShells: true},
	{number: 19, name: "KilledBashComesBack", check: killedBash, part: core},
	{number: 19, name: "BashKilledWhileBusyComesBack", check: killedWhenBusy},
	{number: 20, name: "DeletedDirectoryDoesNotBrickTheSession", check: deletedDir, part: some},
	{number: 21, name: "ParallelCallersNeverMixResults", check: parallelCallers},
	{number: 22, name: "ReadersOfStdinGetEndOfFile", check: endOfFile, part: some},
	{number: 24, name: "NoPagerAndNoEditorOpens", check: noPager},
	{number: 25, name: "LongScriptRunsByteForByte", check: longScript, ofShells: true},
	{number: 26, name: "StartIsBounded", check: boundedStart, part: some, ofShells: true},
	{number: 26, name: "StartIsSafeInTheBackgroundOfATerminal", check: backgroundOfTerminal, ofShells: true},
	{number: 27, name: "StreamsComeApartAndMergeInOrder", check: streams, part: core},
	{number: 28, name: "EndlessOutputIsBounded", check: endlessOutput, alone: true, ofShells: true},
	{number: 29, name: "ReadersOfTheCapturesStayBounded", check: grepCaptures, alone: true, ofShells: true},
	{number: 30, name: "LongOutputHasHeadTailAndPages", check: longOutput, part: some, ofShells: true},
	{number: 31, name: "UTF8IsWholeAtTheCuts", check: wholeRunes, ofShells: true},
	{number: 36, name: "DescriptorsAndProcessesStayFlat", check: flat, alone: true, part: some, ofShells: true},
	{number: 36, name: "DieWithParentLeavesNoOrphans", check: killedProgram, part: core, ofShells: true},
	{number: 38, name: "FilesArePrivateAndRemovedAtClose", check: privateFiles, part: core, ofShells: true},
	{number: 38, name: "LeftoversOfACrashAreSwept", check: sweptAtStart, part: some, ofShells: true},
	{number: 38, name: "SecretsAreInNeitherArgvNorEnvironment", check: secrets, alone: true, part: some, ofShells: true},
	{number: 41, name: "AScriptEndsNeverTheSession", check: scriptEnds, part: some},
	{number: 42, name: "UsableAfterEveryDeath", check: everyDeath, part: core},
	{number: 43, name: "DescriptorsAndNamesAreFree", check: freeNames},
	{number: 44, name: "OutputIsWhole", check: wholeOutput, part: some},
	{number: 45, name: "WhatLimpetSaysCannotBeImitated", check: imitations, ofShells: true},
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

// Run checks every promise over the transports that new makes. The directories of
// the tests, below the temp directory, must look the same to what the
// transport starts as they do here.
//
// With -short only the core promises are checked.
//
// Some checks need a program of their own that they can kill: they run the
// test binary again, as far as this call. Run it in a test that does nothing
// before it, and not in parallel with others: some checks count. That goes for RunPart,
// RunCore and RunPolled, too.
func Run(t *testing.T, new func(t *testing.T) transport.Transport, traits ...Trait) {
	run(t, suite{traits: traits}, new, none)
}

// RunPart is [Run] for a transport that is not the first one: it leaves out the promises
// that have nothing to do with the transport. In ./test all it is Run.
func RunPart(t *testing.T, new func(t *testing.T) transport.Transport, traits ...Trait) {
	run(t, suite{traits: traits}, new, unlessAll(some))
}

// RunCore is [Run] for a transport that differs little from one that keeps all promises,
// as a sandbox for another user does: it checks the core ones. In ./test all it is Run.
func RunCore(t *testing.T, new func(t *testing.T) transport.Transport, traits ...Trait) {
	run(t, suite{traits: traits}, new, unlessAll(core))
}

// RunPolled checks the core promises without file events. 40. Limpet works by polling
// where inotify is missing.
func RunPolled(t *testing.T, new func(t *testing.T) transport.Transport, traits ...Trait) {
	run(t, suite{traits: traits, poll: pollInterval}, new, core)
}

func unlessAll(least part) part {
	if testenv.All() {
		return none
	}
	return least
}

func run(t *testing.T, s suite, new func(t *testing.T) transport.Transport, least part) {
	if role := os.Getenv(roleVar); role != "" {
		s.transport = new(t)
		play(t, role, s)
		return
	}
	if testing.Short() {
		least = core
	}
	s.least = least
	for _, p := range promises {
		if p.part >= least {
			t.Run(p.name, func(t *testing.T) {
				s := s
				s.transport = new(t)
				p.run(t, s)
			})
		}
	}
}

func (p promise) run(t *testing.T, s suite) {
	if !p.alone {
		t.Parallel()
	}
	t.Logf("promise %d", p.number)
	p.check(t, s)
}
