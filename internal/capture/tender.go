package capture

import (
	"sync"
	"time"
)

// Held is a capture that outlives its command because a process that the
// command left behind still has it open.
type Held struct{ c *capture }

// tend keeps the file bounded. It reports true, and drops the file, once
// nobody writes to it any more.
func (h *Held) tend() (gone, grew bool) {
	size, before := h.c.size(), h.c.punched
	h.c.bound(size, size)
	if users(h.c.f) != nobody {
		return false, h.c.punched != before
	}
	h.c.drop()
	return true, false
}

// keptBlindly is how many captures are kept of which nobody knows whether they
// are in use, for want of leases: those of the last commands.
const keptBlindly = 64

// Tender looks after the captures that are held: what a job goes on writing
// stays bounded on disk, and the file goes when the job does. Its goroutine
// lives while there is something to keep. The zero value is ready for use, by
// any number of goroutines.
type Tender struct {
	mu     sync.Mutex
	held   []*Held
	stop   chan struct{} // closed by Close; nil while no goroutine runs
	ended  chan struct{}
	closed bool
}

// The pauses between two looks at what jobs write.
const (
	tendFast = 5 * time.Millisecond
	tendSlow = 250 * time.Millisecond
)

// Tend takes over the captures.
func (t *Tender) Tend(held []*Held) {
	if len(held) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		dropAll(held)
		return
	}
	t.held = append(t.held, held...)
	for len(t.held) > keptBlindly && users(t.held[0].c.f) == unknown {
		t.held[0].c.drop()
		t.held = t.held[1:]
	}
	if t.stop == nil {
		t.stop, t.ended = make(chan struct{}), make(chan struct{})
		go t.loop(t.stop, t.ended)
	}
}

func (t *Tender) loop(stop, ended chan struct{}) {
	defer close(ended)
	pause := tendFast
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		t.mu.Lock()
		grew := t.look()
		if len(t.held) == 0 {
			t.stop = nil
			t.mu.Unlock()
			return
		}
		t.mu.Unlock()
		if pause = min(pause*2, tendSlow); grew {
			pause = tendFast
		}
		timer.Reset(pause)
	}
}

// look tends what is held. The caller holds mu.
func (t *Tender) look() (grew bool) {
	kept := t.held[:0]
	for _, h := range t.held {
		gone, more := h.tend()
		grew = grew || more
		if !gone {
			kept = append(kept, h)
		}
	}
	clear(t.held[len(kept):])
	t.held = kept
	return grew
}

// Close drops what is held, whoever still writes to it, and waits for the
// goroutine. It is safe to call twice.
func (t *Tender) Close() {
	t.mu.Lock()
	t.closed = true
	stop, ended := t.stop, t.ended
	if stop != nil {
		close(stop)
		t.stop = nil
	}
	dropAll(t.held)
	t.held = nil
	t.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func dropAll(held []*Held) {
	for _, h := range held {
		h.c.drop()
	}
}
