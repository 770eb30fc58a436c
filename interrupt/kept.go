package interrupt

import (
	"slices"
	"syscall"

	"github.com/limpet-sh/limpet/internal/proc"
)

// A shell that is no top-level one, a subshell, "bash -c", or the bash of a
// one-shot command, goes on with its next command as bash itself does, if the
// child that it waits for deals with SIGINT and exits. Such shells stay stopped
// until those that they wait for are gone. Nothing of theirs has to be kept: one
// that would go on is ended.

// keptShells are shells, each with those that it waits for.
type keptShells map[proc.ID][]proc.ID

// shells are the programs that go on after a child.
var shells = []string{"bash", "sh", "dash", "ash", "ksh", "mksh", "zsh", "busybox"}

// keep notes which of the processes, which are stopped and signalled, are shells
// that wait for others of them.
func (s *stopping) keep(due []proc.Stat) {
	for _, m := range due {
		if !slices.Contains(shells, proc.Program(m.PID)) || s.background(m) {
			continue
		}
		var waits []proc.ID
		for _, kid := range due {
			// Who was not signalled has ended by itself, a moment before.
			if kid.PPID == m.PID && s.seen[kid.ID()] && !s.background(kid) {
				waits = append(waits, kid.ID())
			}
		}
		if len(waits) > 0 && slices.Contains(s.paused, m.ID()) {
			s.kept[m.ID()] = waits
		}
	}
}

// letGo lets the shells go whose children are gone, or all of them. One whose
// children did not all die of SIGINT would run its next command.
func (s *stopping) letGo(all bool) {
	for id, waits := range s.kept {
		living, obeyed := false, true
		for _, kid := range waits {
			st, err := proc.Read(kid.PID)
			gone := err != nil || st.ID() != kid
			living = living || !gone && !st.Zombie()
			obeyed = obeyed && !gone && st.Ended == syscall.SIGINT
		}
		if living && !all {
			continue
		}
		if !obeyed {
			s.end(id)
		}
		_ = proc.Signal(id, syscall.SIGCONT) // It may be gone: then so be it.
		delete(s.kept, id)
	}
}

// end ends a shell that stands still, by SIGTERM if it has nothing to set
// against that.
func (s *stopping) end(id proc.ID) {
	sig := syscall.SIGTERM
	if signals := proc.ReadSignals(id.PID); signals.Handles(sig) || signals.Ignores(sig) {
		sig = syscall.SIGKILL
	}
	_ = proc.Signal(id, sig) // As above.
}
