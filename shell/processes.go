package shell

import (
	"maps"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
)

// processes are bash's own process, and those that belong to it.
type processes struct {
	entry       string  // the mark of them all
	id          proc.ID // bash; Start is 0 where that is not known
	first       proc.ID // of bash's pid namespace, in which nobody else is; zero if it has none
	stdin       string  // bash's, as proc.Stdin names it
	descriptors int     // how many bash has when no command has opened one; 0: unknown

	pids     *proc.Cursor                // nil where there is none
	lastPID  int                         // as of the end of the last command
	lastTime time.Time                   // when that was
	earlier  map[proc.ID]command.Process // that commands have left running
}

// newProcesses returns those of a bash that is to have the mark. Close it.
func newProcesses(entry string) processes {
	pids, _ := proc.NewCursor() // Without one no leftovers are found.
	return processes{entry: entry, pids: pids, earlier: make(map[proc.ID]command.Process)}
}

// born notes the process that bash is.
func (p *processes) born(conn transport.Conn) {
	p.id = proc.ID{PID: conn.PID()}
	if st, err := proc.Read(p.id.PID); err == nil {
		p.id.Start = st.Start
	}
	if c, ok := conn.(transport.Enclosed); ok {
		if st, err := proc.Read(c.Init()); err == nil {
			p.first = st.ID()
		}
	}
}

// ready notes what bash has when it is ready for its first command.
func (p *processes) ready() {
	p.stdin = proc.Stdin(p.id.PID)
	p.descriptors, _ = proc.Descriptors(p.id.PID) // 0: there is no telling here.
}

// close is safe to call twice.
func (p *processes) close() {
	p.pids.Close()
	p.pids = nil
}

// staleAfter is how old the last look at the pids may be before a command
// starts: other programs use them up too.
const staleAfter = 10 * time.Millisecond

// note notes where pids stand before the command.
func (p *processes) note(now time.Time) {
	if p.lastPID == 0 || now.Sub(p.lastTime) > staleAfter {
		p.lastPID, _ = p.pids.Last() // 0: there is no telling here.
	}
}

// leftover finds the processes that the command left running. Nothing was
// forked anywhere if the last pid has not moved, which is what makes this free
// for commands that fork nothing.
func (p *processes) leftover() []command.Process {
	if p.id.Start == 0 {
		return nil
	}
	candidates, last, err := p.pids.Since(p.lastPID)
	if err != nil {
		return nil // There is no telling here.
	}
	p.lastPID, p.lastTime = last, time.Now()
	if len(candidates) == 0 {
		return nil
	}
	var found []command.Process
	for _, st := range candidates {
		if _, known := p.earlier[st.ID()]; known || st.PID == p.id.PID || st.Zombie() || st.Start < p.id.Start {
			continue
		}
		if st.SID == p.id.PID || st.Carries(p.entry) || p.first.PID != 0 && proc.Below(st, p.first) {
			left := command.Process{PID: st.PID, Start: st.Start, Command: proc.CommandSoon(st)}
			found = append(found, left)
			p.earlier[st.ID()] = left
		}
	}
	const few = 32
	p.forgetEnded(few)
	return found
}

// forgetEnded takes those that have ended from the list of earlier jobs, if it has more than
// that many.
func (p *processes) forgetEnded(few int) {
	if len(p.earlier) <= few {
		return
	}
	for id := range p.earlier {
		if st, err := proc.Read(id.PID); err != nil || st.ID() != id || st.Zombie() {
			delete(p.earlier, id)
		}
	}
}

// jobs are the processes of earlier commands that still run.
func (p *processes) jobs() []command.Process {
	var running []command.Process
	for id, job := range p.earlier {
		if st, err := proc.Read(id.PID); err == nil && st.ID() == id && !st.Zombie() {
			job.Command = proc.Command(id.PID) // It may have been seen between its fork and its exec.
			running = append(running, job)
		}
	}
	return running
}

// members are the processes that are known to be bash's, whether they carry its
// mark or not: the jobs of earlier commands, and bash's children.
func (b *bash) members() []proc.ID {
	ids := slices.Collect(maps.Keys(b.earlier))
	if b.dead() {
		return ids // Its pid may be another's.
	}
	for _, st := range proc.Children(b.id.PID) {
		ids = append(ids, st.ID())
	}
	return ids
}
