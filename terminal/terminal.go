package terminal

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Terminal is a program on a terminal of its own, or what is left of it. It outlives
// whoever looks at it, and what it has printed outlives the program. Its methods are safe
// for concurrent use. A Terminal need not be closed for its own sake: the registry closes
// all.
type Terminal struct {
	r       *Registry
	id      string
	started chan struct{} // closed when its start is over; nil if another program has it, or it is past

	saving sync.Mutex // orders changes with what is written down of them; taken before mu

	mu   sync.Mutex
	info Info
	prog *program // nil unless it was started by this program, and is in memory

	ended chan struct{} // closed when the program has ended, and all is written down
}

// past returns the terminal of a record.
func (r *Registry) past(info Info) *Terminal {
	t := &Terminal{r: r, id: info.ID, info: info, ended: make(chan struct{})}
	if info.State.Ended() {
		close(t.ended)
	}
	return t
}

// ID is the name of the terminal, which no other has.
func (t *Terminal) ID() string { return t.id }

// Info returns what is known of the terminal now.
func (t *Terminal) Info() Info {
	t.mu.Lock()
	info, prog := t.info.clone(), t.prog
	t.mu.Unlock()
	if prog != nil {
		prog.fill(&info)
	} else if !info.State.Ended() && t.started == nil {
		if now, err := t.r.recorded(t.id); err == nil {
			t.learn(now)
			return now
		}
	}
	return info
}

// learn closes ended if the record of a terminal that another program has says that its
// program has ended. A Wait, or a Forget, that begins then would wait for ever.
func (t *Terminal) learn(now Info) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.State.Ended() && !t.info.State.Ended() {
		t.info = now
		close(t.ended)
	}
}

// Done is closed when the program has ended, and all it has printed is there to be read.
// Of a terminal that another program has it is closed if that was so when it was asked for,
// or when its Info was; nobody looks after it in between.
func (t *Terminal) Done() <-chan struct{} { return t.ended }

// move takes the terminal to its next state. It is a [*TransitionError] if that cannot
// follow. What cannot be written down is so nevertheless, and an error.
func (t *Terminal) move(to State, change func(*Info)) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	from := t.info.State
	if err := from.To(to); err != nil {
		t.mu.Unlock()
		return err
	}
	t.info.State = to
	change(&t.info)
	info := t.info
	t.mu.Unlock()
	err := t.r.writeJSON(t.id, recordExt, info)
	t.r.observers.tell(Change{ID: t.id, From: from, To: to, At: time.Now(), Info: info.clone()})
	return err
}

// fail records that the terminal never ran, and returns the error for that.
func (t *Terminal) fail(to State, err error) error {
	moved := t.move(to, func(i *Info) { i.Why, i.Ended = err.Error(), time.Now() })
	close(t.ended)
	t.r.mu.Lock()
	delete(t.r.terminals, t.id)
	t.r.mu.Unlock()
	return errors.Join(err, moved)
}

// live returns the program, or why there is none to be reached.
func (t *Terminal) live(op string) (*program, error) {
	prog := t.program()
	t.mu.Lock()
	info := t.info
	t.mu.Unlock()
	if prog == nil {
		info = t.Info() // It has more to look at: too much for each key that is typed.
	}
	switch {
	case info.State.Ended():
		why := info.Why
		if info.Exit != nil {
			why = info.Exit.String()
		}
		return nil, &Error{Op: op, ID: t.id, Err: ErrEnded, Remedy: "it is " + string(info.State) + ": " + why}
	case prog == nil:
		return nil, t.elsewhere(op, info)
	}
	return prog, nil
}

// program returns the program when its start is over; nil if it is not in memory.
func (t *Terminal) program() *program {
	if t.started != nil {
		<-t.started // Close ends a start that hangs.
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.prog
}

func (t *Terminal) elsewhere(op string, info Info) error {
	return &Error{Op: op, ID: t.id, Err: fmt.Errorf("%w: pid %d", ErrElsewhere, info.OwnerPID), Remedy: "have that one do it (limpet term does, if it is one that can be asked)"}
}

// seen returns what is to be seen of the terminal: as it runs, or from its log.
func (t *Terminal) seen(op string) (*display, error) {
	if prog := t.program(); prog != nil {
		return prog.display, nil
	}
	info := t.Info()
	if !info.State.Ended() {
		return nil, t.elsewhere(op, info)
	}
	d, err := t.r.load(info)
	if err != nil {
		return nil, &Error{Op: op, ID: t.id, Err: err}
	}
	return d, nil
}

// fill adds what changes all the time.
func (p *program) fill(i *Info) {
	if i.State.Ended() {
		return // It was filled in for the last time.
	}
	if !i.Started.IsZero() {
		i.Lasted = time.Since(i.Started)
	}
	i.Kept, i.Bytes, i.Lines = p.out.counts()
	i.Truncated = i.Kept > 0
	i.LastLine = p.out.lastLine()
	if at := p.lastOutput.Load(); at != 0 {
		i.LastOutput = epoch.Add(time.Duration(at))
	}
	i.Size, _ = p.display.history.size(i.Bytes)
	i.Waits = p.waits()
}
