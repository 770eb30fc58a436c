package proc

import (
	"slices"
	"syscall"
	"time"
)

// The graces of KillAll.
const (
	termGrace  = 200 * time.Millisecond
	killRounds = 50
)

// KillAll ends every process that has entry in its environment, and those that
// are named: SIGTERM, a moment, then SIGKILL in rounds, since a process may fork
// while the list is read. It waits until they are gone, as far as we may signal
// them. A process that is about to end has no environment any more: it is known
// by having been seen with one.
func KillAll(entry string, named ...ID) {
	w := wanted{entry: entry, named: named}
	signalled := w.signalAll(syscall.SIGTERM)
	for deadline := time.Now().Add(termGrace); len(signalled) > 0 && time.Now().Before(deadline); {
		WaitAny(signalled, time.Until(deadline))
		signalled = w.left()
	}
	for round := 0; len(signalled) > 0 && round < killRounds; round++ {
		signalled = w.signalAll(syscall.SIGKILL)
		WaitAny(signalled, termGrace/10)
		signalled = w.left()
	}
}

// wanted are the processes that KillAll ends.
type wanted struct {
	entry string
	named []ID
	seen  []ID // with the entry
}

func (w *wanted) signalAll(sig syscall.Signal) []ID {
	ids := w.left()
	signalled := ids[:0]
	for _, id := range ids {
		if err := Signal(id, sig); err == nil {
			signalled = append(signalled, id)
			if sig == syscall.SIGTERM {
				_ = Signal(id, syscall.SIGCONT) // A stopped process sees no signal before it goes on.
			}
		}
	}
	return signalled
}

// left lists those that live.
func (w *wanted) left() []ID {
	tree, _ := Snapshot() // Without /proc there is nobody to be found.
	var ids []ID
	for _, st := range tree.bearers.of(w.entry, 0) {
		ids = append(ids, st.ID())
		if !slices.Contains(w.seen, st.ID()) {
			w.seen = append(w.seen, st.ID())
		}
	}
	add := func(id ID, is func(Stat) bool) {
		if st, ok := tree.Get(id); ok && !st.Zombie() && is(st) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, id := range w.named {
		add(id, func(Stat) bool { return true })
	}
	for _, id := range w.seen {
		add(id, func(st Stat) bool { return st.Exiting })
	}
	return ids
}
