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
// them.
func KillAll(entry string, named ...ID) {
	signalled := signalAll(entry, named, syscall.SIGTERM)
	named = slices.Concat(named, signalled) // What ends has no environment for a while before it is gone, nor has it what execs without one.
	for deadline := time.Now().Add(termGrace); len(signalled) > 0 && time.Now().Before(deadline); {
		WaitAny(signalled, time.Until(deadline))
		signalled = carriers(entry, named)
	}
	for round := 0; len(signalled) > 0 && round < killRounds; round++ {
		signalled = signalAll(entry, named, syscall.SIGKILL)
		named = append(named, signalled...)
		WaitAny(signalled, termGrace/10)
		signalled = carriers(entry, named)
	}
}

func signalAll(entry string, named []ID, sig syscall.Signal) []ID {
	ids := carriers(entry, named)
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

// carriers lists the living processes that have entry in their environment, or
// are named.
func carriers(entry string, named []ID) []ID {
	tree, _ := Snapshot() // Without /proc there is nobody to be found.
	var ids []ID
	for _, st := range tree.bearers.of(entry, 0) {
		ids = append(ids, st.ID())
	}
	for _, id := range named {
		if st, ok := tree.Get(id); ok && !st.Zombie() && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
