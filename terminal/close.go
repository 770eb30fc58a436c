package terminal

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/interrupt"
)

// Close ends the program, with all that it has started, by Options.Ladder: it hears that
// its terminal hangs up, and then is asked, and made, to end. The terminal is cancelled
// then, and can still be looked at. Of a program that has ended by itself, Close ends
// what it has left, as long as its output is in memory. It waits until all is over, and is
// safe to call twice, and from anywhere. The error is ErrRunning if something cannot be
// ended: another user's process, or one that hangs in the kernel.
func (t *Terminal) Close() error {
	p := t.program()
	if p == nil {
		info := t.Info()
		if info.State.Ended() {
			return nil
		}
		return t.elsewhere("close", info)
	}
	p.ending.Do(func() { p.left = t.end(p) })
	if p.left != nil && t.lives() {
		return p.left // It may never end.
	}
	<-t.ended
	return p.left
}

// lives reports whether something of the terminal runs, or its end is not known yet.
func (t *Terminal) lives() bool {
	p := t.program()
	if p == nil {
		return false
	}
	select {
	case <-p.conn.Done():
		return len(p.members()) > 0
	default:
		return true
	}
}

// end climbs the ladder. It is not that of a command that is stopped, of which nothing more
// may run: a program that its terminal hangs up on may well do something about it.
func (t *Terminal) end(p *program) error {
	select {
	case <-p.conn.Done():
	default:
		p.asked.Store(true)
	}
	steps := t.r.opts.Ladder
	if last := DefaultLadder[len(DefaultLadder)-1]; steps[len(steps)-1].Signal != last.Signal {
		steps = append(slices.Clip(steps), last)
	}
	for _, step := range steps {
		if len(p.step(step)) == 0 {
			break
		}
	}
	// What cannot be seen from here, as without /proc, is ended at least by its transport.
	_ = p.conn.Signal(steps[0].Signal) // It may have ended.
	if p.doneWithin(steps[0].Grace) {
		return t.remains(p)
	}
	_ = p.conn.Signal(syscall.SIGKILL) // As above.
	// Of another user's process the terminal itself can be taken away: the kernel asks nobody.
	for _, f := range []*os.File{p.slave, p.master} {
		_ = f.Close() // Nothing is buffered.
	}
	if !p.doneWithin(settle) {
		go func() { _ = p.conn.Close() }() // A sandbox ends so. The one that waits for the program tells of errors; nobody waits for a process that hangs in the kernel.
		p.doneWithin(settle)
	}
	return t.remains(p)
}

// settle is how long the end of a process may take that cannot help it.
const settle = time.Second

func (p *program) doneWithin(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.conn.Done():
		return true
	case <-timer.C:
		return false
	}
}

// remains returns an error if something still runs.
func (t *Terminal) remains(p *program) error {
	left := p.members()
	if len(left) == 0 {
		select {
		case <-p.conn.Done():
			return nil
		default:
			left = []proc.Stat{{PID: p.id.PID, Start: p.id.Start}}
		}
	}
	return &stillRuns{t, &Error{
		Op: "close", ID: t.id, Err: fmt.Errorf("%w: %s", ErrRunning, describe(left)),
		Remedy: "what hangs in the kernel, or is another user's, cannot be ended from here",
	}}
}

// stillRuns is the error of a Close that may be out of date a moment later.
type stillRuns struct {
	t   *Terminal
	err *Error
}

func (e *stillRuns) Error() string { return e.err.Error() }
func (e *stillRuns) Unwrap() error { return e.err }

// lookAgain is how long a step waits before it looks for what was started meanwhile.
const lookAgain = 10 * time.Millisecond

// step signals all that there is, and returns what has not ended at the end of the grace.
// SIGKILL goes to what is started meanwhile, too.
func (p *program) step(step interrupt.Step) []proc.Stat {
	sent := make(map[proc.ID]bool)
	for began, first := time.Now(), true; ; first = false {
		members := p.members()
		if len(members) == 0 {
			members = p.members() // One that forks and exits all the time may be missed by a look.
		}
		if len(members) == 0 || time.Since(began) > step.Grace {
			return members
		}
		ids := make([]proc.ID, len(members))
		for i, m := range members {
			if ids[i] = m.ID(); sent[ids[i]] || !first && step.Signal != syscall.SIGKILL {
				continue
			}
			sent[ids[i]] = true
			_ = proc.Signal(ids[i], step.Signal)     // It may be gone, or not ours: then it is left.
			_ = proc.Signal(ids[i], syscall.SIGCONT) // One that is stopped sees no other signal.
		}
		proc.WaitAny(ids, lookAgain)
	}
}

func describe(list []proc.Stat) string {
	texts := make([]string, len(list))
	for i, st := range list {
		texts[i] = fmt.Sprintf("pid %d (%s)", st.PID, proc.Command(st.PID))
	}
	return strings.Join(texts, ", ")
}
