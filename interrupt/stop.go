package interrupt

import (
	"slices"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
)

// Target is a command that can be stopped, and the bash that runs it.
type Target interface {
	// Members returns the living processes that the command started, without
	// bash. Processes of earlier commands are none of them.
	Members() []proc.Stat

	// Shell returns the identity of bash. Its PID is 0 when the command is a
	// process of its own and no shell has to survive.
	Shell() proc.ID

	// Traps reports whether bash may have a trap for SIGINT. It would run the
	// trap, and then go on with its list.
	Traps() bool

	// SignalShell signals bash alone.
	SignalShell(syscall.Signal)

	// Back reports whether bash is ready for the next command, or dead. It
	// waits for that up to the given time.
	Back(wait time.Duration) (back, dead bool)
}

// lookAgain is how long a stop waits before it looks for processes again: new
// ones may have been started while old ones were signalled.
const lookAgain = 10 * time.Millisecond

// again is when bash gets another SIGINT, if it waits for nobody and has not come
// back. Not too soon: one that hits it while it reads its next line costs it
// half of that line.
const again = 100 * time.Millisecond

// leave is the signal at which bash ends in good order: between two commands,
// and after its exit trap, which saves its state. Bash has no use for it of
// its own, and scripts have none.
const leave = syscall.SIGVTALRM

// leaveGrace is how long bash may take to leave.
const leaveGrace = 500 * time.Millisecond

// Stop climbs the ladder until bash is back and no member lives. It takes at
// most the ladder's Grace and a moment.
//
// SIGINT unwinds bash from whatever it computes. But when it waits for a child,
// bash obeys only if the child dies of SIGINT: it takes a child that exits, as
// ping and many others do, for one that has dealt with the signal, and goes on
// with the next command of the list (bash 5.2, jobs.c, child_caught_sigint).
// That must not happen: the command was stopped. So bash itself is stopped
// while its children are, and when they are gone it is told what to do before
// it goes on: to unwind, or, where it would not, to end with its state saved.
//
// Background jobs ignore SIGINT (bash sees to that where there is no job
// control) and are spared it. Once bash is back, those that the command
// started get the next signal at once.
func (l Ladder) Stop(t Target) Outcome {
	s := stopping{t: t, seen: make(map[proc.ID]bool), killed: make(map[proc.ID]bool), handles: make(map[proc.ID]bool)}
	s.deaf = t.Shell().PID != 0 && proc.Ignores(t.Shell().PID, syscall.SIGINT)
	for _, step := range l.steps() {
		if s.step(step) {
			break
		}
	}
	if s.busy() {
		s.send(leave)
		s.await(leaveGrace)
	}
	if s.busy() {
		t.SignalShell(syscall.SIGKILL)
		s.await(time.Second)
	}
	s.outcome.ShellSurvived = s.back && !s.dead
	for _, m := range t.Members() {
		s.outcome.Left = append(s.outcome.Left, describe(m))
	}
	return s.outcome
}

// stopping is a stop under way.
type stopping struct {
	t          Target
	outcome    Outcome
	seen       map[proc.ID]bool // in outcome.Signalled
	killed     map[proc.ID]bool // in outcome.Killed
	handles    map[proc.ID]bool // had a handler for the signal that it was sent
	deaf       bool             // bash ignores SIGINT: trap '' INT
	held       []proc.ID        // what bash waited for when it was stopped
	released   time.Time        // when bash was last signalled and let go
	tried      bool             // bash had its SIGINT and time to obey
	back, dead bool
}

// busy reports whether bash still runs the command.
func (s *stopping) busy() bool { return !s.back && !s.dead }

// await waits for bash.
func (s *stopping) await(wait time.Duration) {
	if s.busy() {
		s.back, s.dead = s.t.Back(wait)
	}
}

// step sends one signal to whoever is there, also to those who come while it
// waits. It reports true when there is nothing left to do.
func (s *stopping) step(step Step) (done bool) {
	sent := make(map[proc.ID]bool)
	wasBusy := s.busy()
	for deadline := time.Now().Add(step.Grace); ; {
		members := s.t.Members()
		s.hold(members)
		s.grow(members)
		var next []proc.Stat
		for _, m := range members {
			if !sent[m.ID()] && !s.spare(m, step.Signal, members) {
				// A subshell that bash has just forked still ignores what
				// bash does, SIGTERM for one. It is asked again.
				sent[m.ID()] = !proc.Ignores(m.PID, step.Signal)
				next = append(next, m)
			}
		}
		s.signal(next, step.Signal)
		if s.waited(members) {
			if len(s.held) > 0 || time.Since(s.released) > again {
				s.release()
			}
			s.await(lookAgain)
		} else {
			proc.WaitAny(ids(members), lookAgain)
		}
		if !s.busy() && len(s.t.Members()) == 0 {
			return true
		}
		if time.Now().After(deadline) {
			s.tried = true
			return false
		}
		if wasBusy && !s.busy() {
			// Only background jobs are left, deaf to SIGINT: go on at once.
			if wasBusy = false; step.Signal == syscall.SIGINT {
				return false
			}
		}
	}
}

// hold stops bash while it waits for children of this command.
func (s *stopping) hold(members []proc.Stat) {
	shell := s.t.Shell()
	if !s.busy() || shell.PID == 0 || len(s.held) > 0 {
		return
	}
	for _, m := range members {
		if m.PPID == shell.PID && (s.tried || !s.background(m)) {
			s.held = append(s.held, m.ID())
		}
	}
	if len(s.held) > 0 {
		s.t.SignalShell(syscall.SIGSTOP)
	}
}

// young is the age, in clock ticks, up to which a child may not have become the
// program that it is to run. grown is how long that is waited for.
const (
	young = 20
	grown = 30 * time.Millisecond
)

// grow waits for children that bash has just forked to become what they are to
// be. Until then they are bashes, which exit on SIGINT instead of dying of it.
func (s *stopping) grow(members []proc.Stat) {
	shell := s.t.Shell()
	if !s.busy() || shell.PID == 0 {
		return
	}
	own, now := proc.Command(shell.PID), proc.Now()
	for end := time.Now().Add(grown); time.Now().Before(end); time.Sleep(time.Millisecond) {
		waiting := false
		for _, m := range members {
			waiting = waiting || m.PPID == shell.PID && m.Start+young >= now && proc.Command(m.PID) == own
		}
		if !waiting {
			return
		}
	}
}

// waited reports whether nothing is left that bash waits for.
func (s *stopping) waited(members []proc.Stat) bool {
	for _, m := range members {
		for _, id := range s.held {
			if m.ID() == id {
				return false
			}
		}
	}
	return s.busy()
}

// release lets bash go on, with a signal that it finds before anything else.
func (s *stopping) release() {
	sig := syscall.SIGINT
	if s.deaf || s.t.Traps() {
		sig = leave
	}
	for _, id := range s.held {
		if !s.seen[id] {
			continue // It ended by itself, before it was signalled.
		}
		st, err := proc.Read(id.PID)
		if err != nil || st.ID() != id || st.Ended == syscall.SIGINT {
			continue
		}
		if st.Ended != 0 || s.handles[id] {
			sig = leave
		} // Else it ended by itself, at the moment when it was signalled.
	}
	s.held, s.released = nil, time.Now()
	s.send(sig)
}

// send signals bash, whether it is stopped or not.
func (s *stopping) send(sig syscall.Signal) {
	s.t.SignalShell(sig)
	s.t.SignalShell(syscall.SIGCONT)
}

// spare says whether to leave the process alone for now: SIGINT is not meant
// for background jobs, nor for what they wait for. A subshell in the background
// is deaf to it, but not its children: it would go on after them.
func (s *stopping) spare(m proc.Stat, sig syscall.Signal, members []proc.Stat) bool {
	if sig != syscall.SIGINT {
		return false
	}
	for range len(members) + 1 { // A torn view may have loops.
		if s.background(m) {
			return true
		}
		parent := slices.IndexFunc(members, func(p proc.Stat) bool { return p.PID == m.PPID })
		if parent < 0 {
			return false
		}
		m = members[parent]
	}
	return false
}

// background reports whether the process looks like a job that was started
// with "&": it ignores SIGINT and SIGQUIT. When bash ignores SIGINT too there
// is no telling. A program that ignores both by itself is taken for a job, until
// bash has not obeyed a SIGINT: it then waits for one that it must be held for.
func (s *stopping) background(m proc.Stat) bool {
	return !s.deaf && proc.Ignores(m.PID, syscall.SIGINT) && proc.Ignores(m.PID, syscall.SIGQUIT)
}

// signal signals processes at the same moment, as it were: each is stopped,
// then signalled, then let go. Else the end of a pipeline would end in good
// order because its beginning is gone, and bash would go on after it.
func (s *stopping) signal(members []proc.Stat, sig syscall.Signal) {
	together := len(members) > 1 && sig != syscall.SIGKILL
	if together {
		for _, m := range members {
			_ = proc.Signal(m.ID(), syscall.SIGSTOP) // It may be gone: then so be it.
		}
	}
	for _, m := range members {
		described := describe(m) // Before the signal: afterwards it may be gone.
		s.handles[m.ID()] = s.handles[m.ID()] || proc.Handles(m.PID, sig)
		if err := proc.Signal(m.ID(), sig); err != nil {
			continue
		}
		if !s.seen[m.ID()] {
			s.seen[m.ID()] = true
			s.outcome.Signalled = append(s.outcome.Signalled, described)
		}
		if sig == syscall.SIGKILL && !s.killed[m.ID()] {
			s.killed[m.ID()] = true
			s.outcome.Killed = append(s.outcome.Killed, described)
		}
	}
	for _, m := range members {
		if together || m.State == 'T' { // A stopped process sees no signal before it goes on.
			_ = proc.Signal(m.ID(), syscall.SIGCONT)
		}
	}
}

func ids(members []proc.Stat) []proc.ID {
	list := make([]proc.ID, len(members))
	for i, m := range members {
		list[i] = m.ID()
	}
	return list
}

func describe(m proc.Stat) command.Process {
	return command.Process{PID: m.PID, Start: m.Start, Command: proc.Command(m.PID)}
}
