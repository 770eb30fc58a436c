package supervisor

import (
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/interrupt"
)

// Target is a job for an [interrupt.Ladder]: all that descends from it, or carries its
// mark. There is no shell that must survive.
type Target struct {
	Process Process
	Mark    string

	// Over, if not nil, is closed when nothing of the job is left.
	Over <-chan struct{}
}

var _ interrupt.Target = Target{}

// Shell implements [interrupt.Target].
func (t Target) Shell() proc.ID { return proc.ID{} }

// SignalShell implements [interrupt.Target].
func (t Target) SignalShell(syscall.Signal) {}

// Started implements [interrupt.Target].
func (t Target) Started(proc.Stat) bool { return true }

// Traps implements [interrupt.Target].
func (t Target) Traps() bool { return false }

// Fork implements [interrupt.Target].
func (t Target) Fork(proc.Stat) bool { return false }

// EndsWithChild does not matter, since there is no shell.
func (t Target) EndsWithChild() bool { return false }

// Back implements [interrupt.Target].
func (t Target) Back(wait time.Duration) (back, dead bool) {
	if len(t.Members()) == 0 {
		return false, true
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.Over:
		return false, true
	case <-timer.C:
		return false, len(t.Members()) == 0
	}
}

// Members implements [interrupt.Target].
func (t Target) Members() []proc.Stat {
	if reapsAll && !t.Process.Adopted && runs(t.Process.Supervisor) {
		return below(t.Process.Supervisor.PID)
	}
	tree, err := proc.Snapshot()
	if err != nil {
		return nil
	}
	var members []proc.Stat
	listed := map[proc.ID]bool{t.Process.Supervisor: true}
	add := func(list []proc.Stat) {
		for _, st := range list {
			if !listed[st.ID()] {
				listed[st.ID()] = true
				members = append(members, st)
			}
		}
	}
	if t.Process.Job.PID != 0 {
		if job, ok := tree.Get(t.Process.Job); ok && !job.Zombie() {
			add([]proc.Stat{job})
		}
	}
	add(tree.Session(t.Process.Job, t.Mark)) // By the mark also what nobody has written down.
	if t.Process.Supervisor.PID != 0 {
		add(tree.Descendants(t.Process.Supervisor))
	}
	return members
}

// below returns the living processes below one that reaps all that the job has
// started: there are no others. One whose parent ends while this looks may be missed,
// and is found by the next look.
func below(pid int) []proc.Stat {
	var found []proc.Stat
	for _, kid := range proc.Children(pid) {
		if !kid.Zombie() {
			found = append(found, kid)
		}
		found = append(found, below(kid.PID)...)
	}
	return found
}
