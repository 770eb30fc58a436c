package page

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/coder/websocket"

	"github.com/limpet-sh/limpet/terminal"
)

var (
	errReadOnly = errors.New("nothing can be typed: limpet serve was started without --allow-typing")
	errViewing  = errors.New("nothing can be typed: this link is for viewing")
)

// read takes what the browser sends. It ends when the connection is closed, which ends the view.
func (v *view) read() {
	defer v.stop(errHungUp)
	for {
		kind, b, err := v.c.Read(context.WithoutCancel(v.ctx)) // A context that ends closes the connection, on which there is something to be said.
		if err != nil {
			return
		}
		r := request{keys: b}
		if kind == websocket.MessageText {
			r = request{}
			if json.Unmarshal(b, &r) != nil {
				return
			}
		}
		if r.Kind == "seen" {
			v.seen.Store(r.Offset)
			token(v.acked)
			continue
		}
		select {
		case v.todo <- r:
		default:
			if v.tell(said{Kind: "refused", Error: "the program does not read what is typed"}) != nil {
				return
			}
		}
	}
}

// act does what the browser asks for. At its end it hands back.
func (v *view) act() {
	defer func() { _ = v.back() }() // The terminal may be gone.
	for {
		select {
		case r := <-v.todo:
			if err := v.do(r); err != nil && v.tell(said{Kind: "refused", Error: cut(err.Error(), mostError)}) != nil {
				return
			}
		case <-v.lost:
			v.handedBack()
			if v.tell(said{Kind: "back", Error: "another page has taken the terminal over"}) != nil {
				return
			}
		case <-v.ctx.Done():
			return
		}
	}
}

// do does one thing. What comes from a browser that does not type is left alone: it has not heard yet that another one does.
func (v *view) do(r request) error {
	switch {
	case v.as.isOver(): // While this was waiting its turn.
		return nil
	case !v.h.opts.Typing:
		return errReadOnly
	case !v.as.mayType(v.h.opts):
		return errViewing
	case r.Kind == "take":
		info, err := v.t.Info()
		if err != nil {
			return err
		}
		if _, err := v.h.acts(Act{Kind: TakeAct, Session: v.of, By: v.as.by(), About: v.t.ID()}); err != nil {
			return err
		}
		v.h.take(v, info.Size)
		v.typed = 0
		return v.tell(said{Kind: "taken"})
	case !v.h.types(v):
		return nil
	case r.keys != nil:
		n, err := v.t.Write(r.keys)
		v.typed += int64(n)
		return err
	case r.Kind == "size":
		return v.resize(terminal.Size{Cols: r.Cols, Rows: r.Rows})
	case r.Kind == "back":
		if err := v.back(); err != nil {
			return err
		}
		return v.tell(said{Kind: "back"})
	}
	return nil
}

// resize gives the terminal another size.
func (v *view) resize(size terminal.Size) error {
	if err := v.t.Resize(size); err != nil {
		return err
	}
	v.h.sized(v, size)
	if size != v.sizeNow() {
		token(v.again)
	}
	return nil
}

// back hands the terminal back, if this view has it, with the size that it had, unless somebody else has given it another one.
func (v *view) back() error {
	before, set, had := v.h.handBack(v)
	if had {
		defer v.handedBack()
	}
	if !had || before == set {
		return nil
	}
	info, err := v.t.Info()
	if err != nil || info.Size != set || info.State.Ended() {
		return err
	}
	if err := v.t.Resize(before); err != nil {
		return err
	}
	token(v.again)
	return nil
}

// handedBack records that the terminal is not taken over any more.
func (v *view) handedBack() {
	_, _ = v.h.acts(Act{Kind: BackAct, Session: v.of, By: v.as.by(), About: v.t.ID(), Typed: v.typed}) // It is done.
}

// seat is the right to type into a terminal, which one browser has at a time.
type seat struct {
	by *view

	// The size of the terminal before the first one sat down, and the one that was set last. When nobody types any more, the terminal gets
	// back the former, unless somebody else has changed it meanwhile.
	before, set terminal.Size
}

// take gives the right to type to a view. Whoever had it is told.
func (h *Handler) take(v *view, size terminal.Size) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[v.key]
	if s == nil {
		s = &seat{before: size, set: size}
		h.seats[v.key] = s
	} else if s.by != v {
		token(s.by.lost)
	}
	s.by = v
}

// types reports whether a view has the right to type.
func (h *Handler) types(v *view) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[v.key]
	return s != nil && s.by == v
}

// sized notes that a view which types has set a size.
func (h *Handler) sized(v *view, size terminal.Size) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.seats[v.key]; s != nil && s.by == v {
		s.set = size
	}
}

// handBack ends a view's right to type. It returns the sizes of the seat, and false if the view had none.
func (h *Handler) handBack(v *view) (before, set terminal.Size, had bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.seats[v.key]
	if s == nil || s.by != v {
		return before, set, false
	}
	delete(h.seats, v.key)
	return s.before, s.set, true
}
