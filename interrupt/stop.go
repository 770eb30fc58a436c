package interrupt

import (
	"cmp"
	"slices"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
)

// Target is a command that can be stopped, and the bash that runs it. Packages
// shell and oneshot have one; outside of this module there is no use for it, since
// it knows processes by an internal package.
type Target interface {
	// Members returns the living processes that the command started, without
	// bash. Processes of earlier commands are none of them.
	Members() []proc.Stat

	// Shell returns the identity of bash. Its PID is 0 when the command is a
	// process of its own and no shell has to survive.
	Shell() proc.ID

	// Started reports whether the present command started the process, a child
	// of bash, rather than an earlier one.
	Started(proc.Stat) bool

	// Traps reports whether bash may have a trap for SIGINT, or the fork that runs the
	// script in its place. It would run the trap, and then go on with its list.
	Traps() bool

	// Fork reports whether a member is a fork of bash that runs the script in bash's place.
	// Like bash, it must not go on after a trap for SIGINT.
	Fork(proc.Stat) bool

	// EndsWithChild reports whether bash has nothing to go on with when what it waits for has
	// ended, however that ends.
	EndsWithChild() bool

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

// subshellAgain is the same for subshells of a bash that has no trap for it: like
// bash, they obey only if it meets them at a good moment.
const subshellAgain = 20 * time.Millisecond

// leave is the signal at which bash ends in good order: between two commands,
// and after its exit trap, which saves its state. Bash has no use for it of
// its own, and scripts have none. Other shells die of it.
const leave = syscall.SIGVTALRM

// leaveGrace is how long bash may take to leave.
const leaveGrace = 500 * time.Millisecond

// overtime is how much longer than its Grace a stop may take: until bash and its
// children stand still at a good moment, and until a processor is free for those
// that have a signal to obey.
const overtime = 5 * time.Second

// Stop climbs the ladder until bash is back and no member lives. It takes at
// most the ladder's Grace and a moment, which is longer on a machine where
// processes wait for a processor: up to five seconds.
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
func Stop(l Ladder, t Target) Outcome {
	s := stopping{
		t: t, seen: make(map[proc.ID]bool), killed: make(map[proc.ID]bool), handles: make(map[proc.ID]bool),
		stood: make(map[proc.ID]bool), kept: make(map[proc.ID][]proc.ID),
	}
	if shell := t.Shell(); shell.Start != 0 { // Else there is nothing to be known about processes.
		s.shell, s.program, s.file = shell, proc.Command(shell.PID), proc.Program(shell.PID)
		s.deaf = proc.ReadSignals(shell.PID).Ignores(syscall.SIGINT)
	}
	if s.retry = subshellAgain; t.Traps() {
		s.retry = again
	}
	for _, step := range l.Steps() {
		if s.step(step) {
			break
		}
	}
	s.letGo(true)
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
	shell      proc.ID               // zero where there is none
	program    string                // the shell's command line, which its subshells share
	file       string                // and its program
	sent       map[proc.ID]time.Time // who was sent this step's signal, and when
	seen       map[proc.ID]bool      // in outcome.Signalled
	killed     map[proc.ID]bool      // in outcome.Killed
	handles    map[proc.ID]bool      // had a handler for the signal that it was sent
	deaf       bool                  // bash ignores SIGINT: trap '' INT
	retry      time.Duration         // when a subshell gets another signal
	frozen     bool                  // bash is stopped
	held       []proc.ID             // what bash waited for when it was stopped
	paused     []proc.ID             // stopped, to be let go when they have been signalled
	stood      map[proc.ID]bool      // was stopped by somebody else before
	rung       syscall.Signal        // the step's signal
	trapped    map[proc.ID]bool      // shells that had a handler for it
	kept       keptShells            // signalled, and stopped until those that they wait for are gone
	released   time.Time             // when bash was last signalled and let go
	tried      bool                  // bash had its SIGINT and time to obey
	spent      time.Duration         // of the overtime
	limit      time.Time             // until when a good moment is looked for
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
	s.sent, s.trapped, s.rung = make(map[proc.ID]time.Time), make(map[proc.ID]bool), step.Signal
	wasBusy := s.busy()
	began, before := time.Now(), s.spent
	for {
		s.over(s.freeze)
		members := s.t.Members()
		var due []proc.Stat
		for _, m := range members {
			_, was := s.sent[m.ID()]
			if _, kept := s.kept[m.ID()]; was && kept {
				continue
			}
			if was && !s.missed(m) || s.spare(m, step.Signal, members) || s.cleansUp(m, members) {
				continue
			}
			due = append(due, m)
		}
		s.over(func() { s.signal(due, step.Signal) })
		s.letGo(false)
		if s.waited(members) {
			if len(s.held) > 0 || time.Since(s.released) > again {
				s.release()
			} else {
				s.thaw()
			}
			s.await(lookAgain)
		} else {
			proc.WaitAny(ids(members), lookAgain)
		}
		// Twice: one that forks and exits all the time may be missed by a look.
		if !s.busy() && len(s.t.Members()) == 0 && len(s.t.Members()) == 0 {
			return true
		}
		if time.Since(began) > step.Grace+s.spent-before {
			if s.spent < overtime && slices.ContainsFunc(members, func(m proc.Stat) bool { return unheard(m, step.Signal) }) {
				s.spent += lookAgain
				continue
			}
			s.tried = true
			return false
		}
		if wasBusy && !s.busy() {
			wasBusy = false
			hears := func(m proc.Stat) bool { return !proc.ReadSignals(m.PID).Ignores(syscall.SIGINT) }
			if step.Signal == syscall.SIGINT && !slices.ContainsFunc(s.t.Members(), hears) {
				return false // Only background jobs are left: go on at once.
			}
		}
	}
}

// over does something that is no part of the grace.
func (s *stopping) over(do func()) {
	began := time.Now()
	s.limit = began.Add(overtime - s.spent)
	do()
	s.spent = min(s.spent+time.Since(began), overtime)
}

// missed reports whether a process that was signalled in this step is to be signalled
// once more: a shell may have put the signal off at a bad moment.
func (s *stopping) missed(m proc.Stat) bool {
	pause := again
	switch {
	case s.trapped[m.ID()]:
		return false // It runs its trap, which a second one would disturb.
	case s.subshell(m):
		pause = s.retry
	case !s.isShell(m):
		return false
	}
	return time.Since(s.sent[m.ID()]) > pause
}

// late reports that no better moment is to be waited for.
func (s *stopping) late() bool { return time.Now().After(s.limit) }

// unheard reports whether the process could not obey the signal yet, since no
// processor was free for it.
func unheard(m proc.Stat, sig syscall.Signal) bool {
	return proc.State(m.ID()) == 'R' && proc.ReadSignals(m.PID).Awaits(sig)
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
	if !s.t.EndsWithChild() && slices.ContainsFunc(s.held, s.dealtWith) {
		sig = leave
	}
	s.held, s.released = nil, time.Now()
	s.send(sig)
}

// dealtWith reports whether what bash waits for was signalled, and has not died of SIGINT.
func (s *stopping) dealtWith(id proc.ID) bool {
	if !s.seen[id] {
		return false // It ended by itself, after all.
	}
	st, err := proc.Read(id.PID)
	gone := err != nil || st.ID() != id // The kernel reaps where SIGCHLD is ignored.
	return gone && s.handles[id] || !gone && st.Ended != syscall.SIGINT
}

// send signals bash, whether it is stopped or not.
func (s *stopping) send(sig syscall.Signal) {
	s.t.SignalShell(sig)
	s.t.SignalShell(syscall.SIGCONT)
	s.frozen = false
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
	signals := proc.ReadSignals(m.PID)
	return !s.deaf && signals.Ignores(syscall.SIGINT) && signals.Ignores(syscall.SIGQUIT)
}

// signal signals processes at the same moment, as it were: they are stopped,
// then signalled, then let go. Else the end of a pipeline would end in good
// order because its beginning is gone, and bash would go on after it.
func (s *stopping) signal(due []proc.Stat, sig syscall.Signal) {
	// Parents before their children.
	slices.SortFunc(due, func(a, b proc.Stat) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.PID, b.PID)) })
	for _, m := range due {
		if _, kept := s.kept[m.ID()]; m.State == 'T' && !kept && !slices.Contains(s.paused, m.ID()) {
			s.stood[m.ID()] = true
		}
	}
	if sig != syscall.SIGKILL {
		due = s.gather(due)
	} else if len(due) > 1 {
		// Else who waits for the first to die goes on before its own turn comes.
		for _, m := range due {
			_ = proc.Signal(m.ID(), syscall.SIGSTOP) // It may be gone.
		}
		for _, m := range due {
			s.awaitStop(m.ID())
		}
	}
	for _, m := range due {
		if st, err := proc.Read(m.PID); err != nil || st.ID() != m.ID() || st.Zombie() {
			continue // It ended by itself.
		}
		described := describe(m) // Before the signal: afterwards it may be gone.
		signals := proc.ReadSignals(m.PID)
		s.handles[m.ID()] = s.handles[m.ID()] || signals.Handles(sig)
		its := sig
		if sig == syscall.SIGINT && signals.Handles(sig) && s.t.Fork(m) && s.t.Traps() {
			its = leave
		}
		if err := proc.Signal(m.ID(), its); err != nil {
			continue
		}
		if !signals.Ignores(sig) {
			// Else it may be a subshell that was just forked and still ignores
			// what bash does, SIGTERM for one. It is asked again.
			s.sent[m.ID()] = time.Now()
		}
		// From outside, a trap for SIGINT cannot be told from bash's own handler.
		if sig != syscall.SIGINT && signals.Handles(sig) && s.isShell(m) {
			s.trapped[m.ID()] = true
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
	for _, m := range due {
		if m.State == 'T' { // It was stopped before: it sees no signal before it goes on.
			s.paused = append(s.paused, m.ID())
		}
	}
	if sig != syscall.SIGKILL {
		s.keep(due)
	}
	for _, id := range s.paused {
		if _, kept := s.kept[id]; !kept {
			_ = proc.Signal(id, syscall.SIGCONT) // It may be gone: then so be it.
		}
	}
	s.paused = nil
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
