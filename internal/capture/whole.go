package capture

import (
	"context"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
)

// Output through a process substitution, as in "exec > >(tee log)", is written by a process
// that bash does not wait for. A reader of "bash -c" on a pipe gets all of it, since the pipe
// ends when its last writer has closed it. Limpet waits for process substitutions to the same
// end, and for no other process: a job in the background may write for ever.

// How long a command waits for its process substitutions: until they have ended, but no
// longer than substitutionQuiet after their last output, nor than substitutionMost in all.
// While one has no processor, or waits for a disk, it is not quiet: see starved.
const (
	substitutionQuiet = time.Second
	substitutionMost  = 5 * time.Second
	substitutionLook  = 20 * time.Millisecond

	// substitutionStart is how long a fork of bash may take to become one, or for how long it
	// may run until then.
	substitutionStart = 250 * time.Millisecond
)

// AwaitSubstitutions waits for the process substitutions among the processes that the command
// has left running, and returns the others and those that still run. More says which have
// come since it was asked before, since those may start others; it may say again which are
// known.
func (m *Monitor) AwaitSubstitutions(ctx context.Context, left []command.Process, more func() []command.Process) []command.Process {
	began, grown, size := time.Now(), time.Now(), int64(-1)
	for {
		writers, forks, busy := m.substitutions(left)
		forking := len(forks) > 0 && (busy || time.Since(began) < substitutionStart)
		if len(writers) > 0 {
			proc.WaitAny(writers, substitutionLook)
		} else if forking && time.Since(began) < substitutionStart {
			proc.WaitAny(forks, time.Millisecond)
		} else if forking {
			proc.WaitAny(forks, substitutionLook)
		}
		m.Look()
		stdout, stderr := m.o.Sizes()
		if now := stdout + stderr; now != size || busy {
			grown, size = time.Now(), now
		}
		left = slices.DeleteFunc(left, hasEnded)
		if time.Since(grown) > substitutionQuiet || time.Since(began) > substitutionMost || ctx.Err() != nil {
			return left
		}
		// One that has given its output to another is no writer any more, but has started that.
		known := len(left)
		for _, p := range more() {
			same := func(l command.Process) bool { return l.PID == p.PID && l.Start == p.Start }
			if !slices.ContainsFunc(left, same) {
				left = append(left, p)
			}
		}
		if len(writers) == 0 && !forking && len(left) == known {
			return left
		}
	}
}

// substitutions returns two kinds of processes. Writers read from a pipe and write to a
// capture. Forks are shells that have a capture open and no pipe yet: each may be a process
// substitution that is about to get its pipe. Many programs close both streams, one by one,
// before they exit. Busy reports whether one of them is starved.
func (m *Monitor) substitutions(left []command.Process) (writers, forks []proc.ID, busy bool) {
	const stdin, stdout = 0, 1
	for _, p := range left {
		st, err := proc.Read(p.PID) // Before its descriptors: a fork that slept by then, and has no pipe now, gets none.
		id := proc.ID{PID: p.PID, Start: p.Start}
		switch {
		case err != nil || st.ID() != id || !m.o.heldBy(p.PID) && !proc.Closed(p.PID, stdout):
		case proc.ReadsPipe(p.PID) || proc.Closed(p.PID, stdin):
			writers = append(writers, id)
			busy = busy || starved(st, substitutionQuiet)
		case !st.Execed:
			forks = append(forks, id)
			busy = busy || starved(st, substitutionStart)
		}
	}
	return writers, forks, busy
}

// starved reports whether a process waited for a processor or a disk (or ran), and has not run
// for that long yet. On a busy machine it may take a second to do what else takes a millisecond;
// a process that runs and runs is not starved for long.
func starved(st proc.Stat, ran time.Duration) bool {
	return (st.State == 'R' || st.State == 'D') && proc.Ran(st.ID()) < ran
}

func hasEnded(p command.Process) bool {
	st, err := proc.Read(p.PID)
	return err != nil || st.ID() != (proc.ID{PID: p.PID, Start: p.Start}) || st.Zombie() || st.Exiting
}
