package terminal

import (
	"fmt"
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
	<-t.ended
	return p.left
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
	var left []proc.Stat
	for _, step := range steps {
		if left = p.step(step); len(left) == 0 {
			break
		}
	}
	// What cannot be seen from here, as without /proc, is killed at least by its transport.
	_ = p.conn.Signal(steps[0].Signal) // It may have ended.
	timer := time.NewTimer(steps[0].Grace)
	defer timer.Stop()
	select {
	case <-p.conn.Done():
	case <-timer.C:
		_ = p.conn.Close() // It kills, and the one that waits for the program tells of errors.
	}
	if len(left) > 0 {
		left = p.members() // Some may have taken a moment longer.
	}
	if len(left) > 0 {
		return &Error{Op: "close", ID: t.id, Err: fmt.Errorf("%w: %s", ErrRunning, describe(left)), Remedy: "what hangs in the kernel, or is another user's, cannot be ended from here"}
	}
	return nil
}

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
