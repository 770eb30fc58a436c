package interrupt

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
)

// SIGINT makes bash unwind if the child that it waits for dies of SIGINT. It
// does not if the child ended by itself a moment before; nor if it is hit
// between its fork and its exec, when it still has bash's handler, and exits;
// nor when bash has just reaped a child and not yet put its own handler back.
// And a bash that is interrupted while it puts a pipeline together may loop for
// ever (seen with 5.2). So bash and its children are stopped first, and looked
// at. If the moment is a bad one, bash goes on for an instant, and is stopped
// again.
//
// How long that may take is measured in the time that processes had on a
// processor: on a busy machine one may wait for a processor for longer than it
// needs to start a program.
const (
	// instant is how much processor time bash has between two tries, unless it
	// sleeps before that.
	instant = 200 * time.Microsecond
	// alone is how often in a row bash must be seen without a child to be taken
	// for one that computes.
	alone = 4
	// sleeps is in how many looks in a row a fork must sleep to be taken for one
	// that hangs before it is what it is to be.
	sleeps = 100
	// computes is how much processor time a shell may use, without having waited for
	// a child, before it is taken for one that computes: it starts a program with less
	// than a tenth of it, as a rule.
	computes = 20 * time.Millisecond
	// pause is how long it is between two looks at a process.
	pause = 50 * time.Microsecond
)

// freeze stops bash and what it waits for, unless they are stopped already.
func (s *stopping) freeze() {
	if !s.busy() || s.shell.PID == 0 || s.frozen {
		return
	}
	s.frozen = true
	for _, kid := range s.pin(s.t.SignalShell, s.shell, s.t.Started) {
		s.held = append(s.held, kid.ID())
	}
}

// thaw lets bash go on as if nothing had been.
func (s *stopping) thaw() {
	if s.frozen {
		s.t.SignalShell(syscall.SIGCONT)
		s.frozen = false
	}
}

// pin stops a shell, and what it waits for, at a moment when that is alive and
// the shell waits. It returns those children: none if the shell computes.
// Background jobs are left alone. A shell that stood still before stays so.
func (s *stopping) pin(signal func(syscall.Signal), shell proc.ID, counts func(proc.Stat) bool) (awaited []proc.Stat) {
	if proc.State(shell) == 'T' {
		awaited, _ = s.pauseChildren(shell, counts, true)
		return awaited
	}
	began, faults := proc.Ran(shell), childFaults(shell)
	for seen := (sight{}); ; {
		// A shell that has waited for a child since then starts programs, and does not
		// compute, however much processor time it needs for that: its memory may be large,
		// or its children start and end where we have no turn between.
		if now := childFaults(shell); now != faults {
			began, faults = proc.Ran(shell), now
		}
		// The children first: the shell does not get past one that stands still,
		// unless it has job control (set -m), by which it goes on after one.
		if !controlsJobs(shell, counts) {
			early, _ := s.pauseChildren(shell, counts, false)
			if awaited = append(awaited, early...); len(awaited) > 0 {
				s.settle(shell, computes)
			}
		}
		seen.asleep = proc.State(shell) == 'S'
		signal(syscall.SIGSTOP)
		seen.gone = !s.awaitStop(shell)
		// Also of one that hangs in the kernel: in a vfork, until its child has a processor.
		late, ended := s.pauseChildren(shell, counts, true)
		awaited = append(awaited, late...)
		if !seen.gone {
			signals := proc.ReadSignals(shell.PID)
			// Who stood still when our signal came, also since a moment ago, has not got
			// it yet, or stands in its kill -STOP $$.
			seen.stood = signals.Awaits(syscall.SIGSTOP) || proc.Kills(shell.PID)
			seen.traps = s.rung != syscall.SIGINT && signals.Handles(s.rung)
			// A child that was waited for since the round began is not to be seen any more.
			seen.ended = ended || childFaults(shell) != faults
			seen.awaits, seen.waits = len(awaited) > 0, proc.AwaitsChild(shell.PID)
			seen.ran, seen.late = proc.Ran(shell)-began, s.late()
			seen.count()
		}
		if seen.isGood() {
			return awaited
		}
		// Asked once more: there may have been no job yet when the round began.
		if controlsJobs(shell, counts) {
			s.unpause(awaited)
			awaited = nil
		}
		signal(syscall.SIGCONT) // Those that it will wait for stay as they are, as a rule.
		s.settle(shell, instant)
	}
}

// childFaults returns a number that changes whenever the shell has waited for a child.
func childFaults(shell proc.ID) int {
	st, _ := proc.Read(shell.PID) // Gone: it changes no more.
	return st.ChildFaults
}

// controlsJobs reports whether a shell has children that may be jobs.
func controlsJobs(shell proc.ID, counts func(proc.Stat) bool) bool {
	return slices.ContainsFunc(proc.Children(shell.PID), func(kid proc.Stat) bool {
		return counts(kid) && isJob(shell, kid.ID())
	})
}

// isJob reports whether a child has a process group of its own, or may be about to
// have one: a fork that has grown has it by then (bash 5.2, jobs.c, make_child), but
// where the shell has no handler for SIGINT nobody sees one grow.
func isJob(shell, kid proc.ID) bool {
	parent, errParent := proc.Read(shell.PID)
	st, err := proc.Read(kid.PID)
	if errParent != nil || err != nil || st.ID() != kid || st.Zombie() {
		return false
	}
	return st.PGRP != parent.PGRP || !st.Execed && !proc.ReadSignals(shell.PID).Handles(syscall.SIGINT)
}

// unpause lets processes go on that were paused, as if nothing had been.
func (s *stopping) unpause(list []proc.Stat) {
	for _, m := range list {
		at := slices.Index(s.paused, m.ID())
		if at < 0 || s.stood[m.ID()] {
			continue
		}
		s.paused = slices.Delete(s.paused, at, at+1)
		_ = proc.Signal(m.ID(), syscall.SIGCONT) // It may be gone: then so be it.
	}
}

// settle waits until a shell sleeps, or has had that much processor time. One
// with a child that stands still comes to wait for it, as a rule.
func (s *stopping) settle(shell proc.ID, enough time.Duration) {
	for began := proc.Ran(shell); proc.State(shell) == 'R' && proc.Ran(shell)-began < enough && !s.late(); {
		time.Sleep(pause)
	}
}

// awaitStop waits until a process that was sent SIGSTOP stands still.
func (s *stopping) awaitStop(id proc.ID) bool { return proc.AwaitStop(id, time.Until(s.limit)) }

// pauseChildren stops the children that a shell waits for, its jobs only when it
// stands still itself. It reports whether there was a child that had ended.
func (s *stopping) pauseChildren(shell proc.ID, counts func(proc.Stat) bool, stands bool) (awaited []proc.Stat, ended bool) {
	program := proc.Command(shell.PID)
	for _, kid := range proc.Children(shell.PID) {
		if !counts(kid) || slices.Contains(s.paused, kid.ID()) {
			continue
		}
		if kid.State == 'T' {
			s.stood[kid.ID()] = true
		}
		s.grow(kid, program)
		switch {
		case kid.Zombie():
			ended = true
		case !s.tried && s.background(kid):
		case !stands && isJob(shell, kid.ID()): // Asked once more: now it has grown.
		case s.pause(kid):
			awaited = append(awaited, kid)
		default:
			ended = true
		}
	}
	return awaited, ended
}

// pause stops a process until it has been signalled. It reports false if that
// has ended. One that may not be signalled (sudo) goes on.
func (s *stopping) pause(m proc.Stat) bool {
	if err := proc.Signal(m.ID(), syscall.SIGSTOP); err != nil {
		return !errors.Is(err, proc.ErrGone)
	}
	s.paused = append(s.paused, m.ID())
	if s.awaitStop(m.ID()) {
		return true
	}
	st, err := proc.Read(m.PID)
	return err == nil && st.ID() == m.ID() && !st.Zombie() // It hangs in the kernel.
}

// grow waits until a fork of a shell has become what it is to be, a program or
// a subshell. Until then its shell's handler for SIGINT, or its trap for the step's
// signal, would only note the signal, and the program would start without it.
//
// A fork of the interactive shell ignores SIGQUIT until it has reset its
// signals (bash 5.2, execute_cmd.c: restore_original_signals in
// execute_disk_command, reset_signal_handlers in execute_in_subshell). A
// subshell, and a fork of one, differ in nothing but in what they do: a subshell
// soon sleeps, or it computes for long.
func (s *stopping) grow(kid proc.Stat, program string) {
	asleep := 0
	for began := proc.Ran(kid.ID()); !s.late(); time.Sleep(pause) {
		signals := proc.ReadSignals(kid.PID)
		if !signals.Handles(syscall.SIGINT) && !signals.Handles(s.rung) || program == "" || proc.Command(kid.PID) != program {
			return
		}
		st, err := proc.Read(kid.PID)
		if err != nil || st.ID() != kid.ID() {
			return
		}
		if asleep++; st.State == 'R' {
			asleep = 0
		}
		reset := !signals.Ignores(syscall.SIGQUIT) && (s.rung == syscall.SIGINT || !signals.Handles(s.rung))
		if proc.Ran(kid.ID())-began > computes || asleep == sleeps || reset && st.State == 'S' || st.State == 'T' {
			return
		}
	}
}

// subshell reports whether the process is a copy of bash.
func (s *stopping) subshell(m proc.Stat) bool {
	return s.program != "" && proc.Command(m.PID) == s.program
}

// gather stops processes from the top down, so that nobody has new children
// meanwhile, and adds those that they have. A shell is stopped at a good
// moment, as bash is.
func (s *stopping) gather(due []proc.Stat) []proc.Stat {
	known := make(map[proc.ID]bool)
	for _, m := range due {
		known[m.ID()] = true
	}
	all := func(proc.Stat) bool { return true }
	for i := 0; i < len(due); i++ { // It grows.
		m := due[i]
		var kids []proc.Stat
		// Who stood still before, or is a job, is no shell that would go on.
		if _, kept := s.kept[m.ID()]; kept {
			s.paused = append(s.paused, m.ID())
			kids = proc.Children(m.PID)
		} else if s.isShell(m) && !s.stood[m.ID()] && !s.background(m) {
			// Stopped as a child of bash, at whatever moment. Unlike a SIGINT, a signal that
			// it has a trap for is not sent again.
			if s.rung != syscall.SIGINT && proc.ReadSignals(m.PID).Handles(s.rung) {
				s.unpause([]proc.Stat{m})
			}
			kids = s.pin(func(sig syscall.Signal) { _ = proc.Signal(m.ID(), sig) }, m.ID(), all)
			s.paused = append(s.paused, m.ID())
		} else if s.pause(m) {
			kids = proc.Children(m.PID)
		}
		for _, kid := range kids {
			if time.Since(s.sent[kid.ID()]) < again {
				continue // A program may take a second one for another wish.
			}
			if !known[kid.ID()] && !kid.Zombie() && !s.background(kid) {
				known[kid.ID()] = true
				due = append(due, kid)
			}
		}
	}
	return due
}
