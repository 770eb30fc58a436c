package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/internal/statedir"
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
	info, prog := t.info, t.prog
	t.mu.Unlock()
	if prog != nil {
		prog.fill(&info)
	} else if !info.State.Ended() && t.started == nil {
		if now, err := t.r.recorded(t.id); err == nil {
			return now
		}
	}
	return info
}

// Done is closed when the program has ended, and all it has printed is there to be read.
// Of a terminal that another program has it is closed if that was so when it was asked for.
func (t *Terminal) Done() <-chan struct{} { return t.ended }

// move takes the terminal to its next state. It is a [*TransitionError] if that cannot
// follow. What cannot be written down is so nevertheless.
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
	if err != nil {
		t.r.opts.Logger.Warn("limpet: a terminal cannot be written down", "id", t.id, "state", to, "err", err)
	}
	t.r.observers.tell(Change{ID: t.id, From: from, To: to, At: time.Now(), Info: info})
	return nil
}

// note writes down something besides the state.
func (t *Terminal) note(change func(*Info)) {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	change(&t.info)
	info := t.info
	t.mu.Unlock()
	if err := t.r.writeJSON(t.id, recordExt, info); err != nil {
		t.r.opts.Logger.Warn("limpet: a terminal cannot be written down", "id", t.id, "err", err)
	}
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

// load reads what a program has printed that is not in memory any more.
func (r *Registry) load(info Info) (*display, error) {
	var again replay
	data, err := statedir.Read(r.path(info.ID, logExt), logMax)
	if err == nil {
		err = r.readJSON(info.ID, replayExt, &again)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && info.Bytes == 0:
		// It never ran, or was lost: nothing was written.
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("what it has printed is not there any more: %w", ErrNotFound)
	case err != nil:
		return nil, err
	}
	if len(again.History.Sizes) == 0 {
		again.History.Sizes = []sized{{At: info.Created, Size: info.Size}}
	}
	for i, s := range again.History.Sizes {
		again.History.Sizes[i].Size = s.Size.Clamp() // It may have failed for it.
	}
	out := ringOf(again.Offset, data)
	d := newDisplay(out, &history{timeline: again.History}, r.opts.Scrollback)
	d.first = &beginning{offset: max(again.From, again.Offset), restore: again.Restore}
	return d, nil
}

// fill adds what changes all the time.
func (p *program) fill(i *Info) {
	if i.State.Ended() {
		return // It was filled in for the last time.
	}
	i.Kept, i.Bytes, i.Lines = p.out.counts()
	i.Truncated = i.Kept > 0
	i.LastLine = p.out.lastLine()
	if at := p.lastOutput.Load(); at != 0 {
		i.LastOutput = time.Unix(0, at)
	}
	i.Size, _ = p.display.history.size(i.Bytes)
}

// lastLine is the last line that is not blank, as a person would read it.
func (r *ring) lastLine() string {
	const look, most = 4 << 10, 200
	_, tail := r.tail(look)
	lines := strings.Split(ansi.Strip(strings.ToValidUTF8(string(tail[runes.BrokenStart(tail):]), "\uFFFD")), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimRight(lines[i], "\r ")
		line = line[strings.LastIndexByte(line, '\r')+1:] // What was written over it.
		line = strings.TrimSpace(strings.Map(printable, line))
		if line != "" {
			if len(line) > most {
				line = line[:runes.Whole([]byte(line[:most]))]
			}
			return line
		}
	}
	return ""
}

func printable(c rune) rune {
	if c < ' ' || c == 0x7f {
		return -1
	}
	return c
}
