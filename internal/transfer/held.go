package transfer

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"
)

// holding has the parts that are being written by requests, so that not each request has to open one, and to sum it up. Its methods
// are safe for concurrent use.
type holding struct {
	local *Local

	mu     sync.Mutex
	closed bool
	parts  map[string]*held  // by root and path
	over   map[string]ending // how copies ended, by their ids, for turnPatience at least: a late chunk shall not begin one anew
}

// ending is when a copy ended, and what its chunks that come yet are told.
type ending struct {
	at  time.Time
	err error
}

// held is a part between two requests. It is let go of when nobody has asked for it for a while.
type held struct {
	mu    sync.Mutex
	part  *part
	id    string        // of the copy that writes it; the last one that began
	news  chan struct{} // closed when something was written
	timer *time.Timer   // lets go of it
	gone  bool
}

const (
	heldFor = time.Minute

	// turnPatience is how long a chunk waits for those before it, which were sent before it.
	turnPatience = 30 * time.Second
)

func (r request) key() string { return string(r.Root) + "\x00" + string(r.Path) }

// get returns the part of a request, locked, which it opens if it is not held. The caller unlocks it.
func (h *holding) get(ctx context.Context, in request) (*held, error) {
	for {
		h.mu.Lock()
		switch was, over := h.over[in.ID]; {
		case h.closed:
			h.mu.Unlock()
			return nil, fs.ErrClosed
		case over:
			h.mu.Unlock()
			return nil, was.err
		}
		p := h.parts[in.key()]
		if p == nil {
			p = &held{id: in.ID, news: make(chan struct{})}
			p.timer = time.AfterFunc(heldFor, func() { h.drop(in.key(), p, false) })
			h.parts[in.key()] = p
		}
		h.mu.Unlock()
		p.mu.Lock()
		if p.gone {
			p.mu.Unlock()
			continue // Just now.
		}
		p.timer.Reset(heldFor)
		if p.part != nil {
			return p, nil
		}
		part, err := h.local.openPart(ctx, string(in.Root), string(in.Path), in.Entry)
		if noRoom(err) {
			h.end(in, err)
		}
		if err != nil {
			p.mu.Unlock()
			h.drop(in.key(), p, false)
			return nil, err
		}
		p.part = part
		return p, nil
	}
}

// holds reports whether the part of a request is held.
func (h *holding) holds(in request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.parts[in.key()] != nil
}

// end has no more chunks of a copy be taken. It returns the part that its requests ask for, if that is held.
func (h *holding) end(in request, err error) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	for id, was := range h.over {
		if now.Sub(was.at) > turnPatience {
			delete(h.over, id)
		}
	}
	if _, over := h.over[in.ID]; !over {
		h.over[in.ID] = ending{now, err}
	}
	return h.parts[in.key()]
}

// why is what a chunk is told whose part is gone.
func (h *holding) why(in request) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if was, over := h.over[in.ID]; over {
		return was.err
	}
	return errTaken
}

// drop lets go of a part.
func (h *holding) drop(key string, p *held, discard bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h.forget(key, p)
	if p.part == nil {
		return
	}
	if discard {
		p.part.discard()
	} else {
		p.part.keep()
	}
	p.part = nil
}

// forget has a part no longer be held. The caller holds its mu.
func (h *holding) forget(key string, p *held) {
	p.gone = true
	p.timer.Stop()
	p.told()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.parts[key] == p {
		delete(h.parts, key)
	}
}

// told wakes the chunks that wait for their turn. The caller holds mu.
func (p *held) told() {
	close(p.news)
	p.news = make(chan struct{})
}

func (h *holding) close() {
	h.mu.Lock()
	h.closed = true
	all := make(map[string]*held)
	for key, p := range h.parts {
		all[key] = p
	}
	h.mu.Unlock()
	for key, p := range all {
		h.drop(key, p, false)
	}
}

func (h *holding) begin(ctx context.Context, in request) (any, error) {
	p, err := h.get(ctx, in)
	if err != nil {
		return nil, err
	}
	defer p.mu.Unlock()
	p.id, p.part.entry = in.ID, in.Entry
	if p.part.next > in.Entry.Size {
		if err := p.part.reset(); err != nil {
			return nil, err
		}
	}
	p.told()
	return p.part.state(), nil
}

func (h *holding) write(ctx context.Context, in request) (any, error) {
	switch { // The answer was lost.
	case in.End != nil && h.isDone(in):
		return wrote{in.End.Size, true}, nil
	case in.End == nil && !in.Restart && !h.holds(in) && h.isDone(in): // And that of the last chunk, too.
		return wrote{Next: in.Offset + int64(len(in.came))}, nil
	}
	p, err := h.get(ctx, in)
	if err != nil {
		return nil, err
	}
	if in.Restart {
		p.id, p.part.entry = in.ID, in.Entry
		if err := p.part.reset(); err != nil {
			p.mu.Unlock()
			return nil, err
		}
	}
	late := time.NewTimer(turnPatience)
	defer late.Stop()
	for p.id == in.ID && !p.gone && p.part.next < in.Offset {
		news := p.news
		p.mu.Unlock()
		select {
		case <-news:
		case <-late.C:
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.gone || p.id != in.ID {
				return nil, h.why(in)
			}
			return wrote{Next: p.part.next}, nil // What is before it did not come.
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		p.mu.Lock()
	}
	defer p.mu.Unlock()
	switch {
	case p.gone && in.End != nil && h.isDone(in):
		return wrote{in.End.Size, true}, nil // It was sent twice.
	case p.gone, p.id != in.ID:
		return nil, h.why(in)
	}
	if have := p.part.next - in.Offset; have > 0 { // It was sent twice.
		in.came = in.came[min(have, int64(len(in.came))):]
		in.Offset = p.part.next
	}
	if len(in.came) > 0 {
		err = p.part.write(in.Offset, in.came)
	}
	if noRoom(err) || errors.Is(err, errLonger) {
		h.end(in, err)
		p.part.discard()
		p.part = nil
		h.forget(in.key(), p)
	}
	if err != nil {
		return nil, err
	}
	p.told()
	if in.End == nil {
		return wrote{Next: p.part.next}, nil
	}
	if err = p.part.commit(*in.End); err != nil {
		h.end(in, err)
	}
	p.part = nil
	h.forget(in.key(), p)
	return wrote{in.End.Size, true}, err
}

// isDone reports whether the file of a request has got its name.
func (h *holding) isDone(in request) bool {
	root, err := h.local.open(string(in.Root))
	if err != nil || checkPath(string(in.Path)) != nil {
		return false // Which is told by what comes then.
	}
	defer root.Close() // Nothing was written.
	st, err := root.Lstat(orDot(string(in.Path)))
	return err == nil && isThere(st, in.Entry)
}

// release lets go of a part, if it is that copy's.
func (h *holding) release(in request) {
	p := h.end(in, errTaken)
	if p == nil {
		return
	}
	p.mu.Lock()
	own := p.id == in.ID
	p.mu.Unlock()
	if own {
		h.drop(in.key(), p, in.Discard)
	}
}
