package interrupt

import (
	"path/filepath"
	"slices"
	"syscall"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
	"github.com/limpet-sh/limpet/internal/proc"
)

// A shell that is no top-level one, a subshell, "bash -c", or the bash of a
// one-shot command, goes on with its next command as bash itself does, if the
// child that it waits for deals with SIGINT and exits. Such shells stay stopped
// until those that they wait for are gone. Nothing of theirs has to be kept: one
// that would go on is ended, after its exit trap if it is a bash.

// keptShells are shells, each with those that it waits for.
type keptShells map[proc.ID][]proc.ID

// shellNames are the programs that go on after a child, also with a version behind
// their names.
var shellNames = lazyregexp.New(`^(r?bash|sh|dash|ash|(m|l|pd)?ksh(93)?|yash|zsh|busybox)(-?[0-9.]+|-static)?$`)

// isShell reports whether the process is a shell: a copy of bash, the same program,
// or one by its name.
func (s *stopping) isShell(m proc.Stat) bool {
	if s.subshell(m) {
		return true
	}
	file := proc.Program(m.PID)
	return file != "" && (file == s.file || shellNames().MatchString(filepath.Base(file)))
}

// keep notes which of the processes, which are stopped and signalled, are shells
// that wait for others of them.
func (s *stopping) keep(due []proc.Stat) {
	for _, m := range due {
		if !s.isShell(m) || s.background(m) {
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

// letGo lets the shells go whose children are gone, or all of them. One that would run
// its next command gets the signal to leave first.
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
		if s.wouldGoOn(id, obeyed) {
			_ = proc.Signal(id, leave) // As below.
		}
		_ = proc.Signal(id, syscall.SIGCONT) // It may be gone: then so be it.
		delete(s.kept, id)
	}
}

// wouldGoOn reports whether a shell, which has the step's signal, would run its next
// command after its children; obeyed says that all of these died of SIGINT.
//
// At a SIGINT it unwinds only if they did. Of any other signal it dies, or ends after
// its exit trap, or it has a trap for that, which is to run: it may clean up.
func (s *stopping) wouldGoOn(id proc.ID, obeyed bool) bool {
	if s.rung == syscall.SIGINT && !obeyed {
		return true
	}
	return proc.ReadSignals(id.PID).Ignores(s.rung)
}

// cleansUp reports whether the process was started by a shell's trap for the step's
// signal: it may do what it is there for, up to the next step.
func (s *stopping) cleansUp(m proc.Stat, members []proc.Stat) bool {
	if s.seen[m.ID()] {
		return false
	}
	for range len(members) { // A torn view may have loops.
		parent := slices.IndexFunc(members, func(p proc.Stat) bool { return p.PID == m.PPID })
		if parent < 0 {
			return false
		}
		if m = members[parent]; s.trapped[m.ID()] {
			return true
		}
	}
	return false
}
