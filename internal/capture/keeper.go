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

// Keeper looks after the captures that are held: what a job goes on writing
// stays bounded on disk, and the file goes when the job does. Its goroutine
// lives while there is something to keep. The zero value is ready for use, by
// any number of goroutines.
type Keeper struct {
	mu     sync.Mutex
	held   []*Held
	stop   chan struct{} // closed by Close; nil while no goroutine runs
	ended  chan struct{}
	closed bool
}

// The pauses between two looks at what jobs write.
const (
	keepFast = 5 * time.Millisecond
	keepSlow = 250 * time.Millisecond
)

// Keep takes over the captures.
func (k *Keeper) Keep(held []*Held) {
	if len(held) == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		dropAll(held)
		return
	}
	k.held = append(k.held, held...)
	for len(k.held) > keptBlindly && users(k.held[0].c.f) == unknown {
		k.held[0].c.drop()
		k.held = k.held[1:]
	}
	if k.stop == nil {
		k.stop, k.ended = make(chan struct{}), make(chan struct{})
		go k.loop(k.stop, k.ended)
	}
}

func (k *Keeper) loop(stop, ended chan struct{}) {
	defer close(ended)
	pause := keepFast
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
		}
		k.mu.Lock()
		grew := k.look()
		if len(k.held) == 0 {
			k.stop = nil
			k.mu.Unlock()
			return
		}
		k.mu.Unlock()
		if pause = min(pause*2, keepSlow); grew {
			pause = keepFast
		}
		timer.Reset(pause)
	}
}

// look tends what is held. The caller holds mu.
func (k *Keeper) look() (grew bool) {
	kept := k.held[:0]
	for _, h := range k.held {
		gone, more := h.tend()
		grew = grew || more
		if !gone {
			kept = append(kept, h)
		}
	}
	clear(k.held[len(kept):])
	k.held = kept
	return grew
}

// Close drops what is held, whoever still writes to it, and waits for the
// goroutine. It is safe to call twice.
func (k *Keeper) Close() {
	k.mu.Lock()
	k.closed = true
	stop, ended := k.stop, k.ended
	if stop != nil {
		close(stop)
		k.stop = nil
	}
	dropAll(k.held)
	k.held = nil
	k.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func dropAll(held []*Held) {
	for _, h := range held {
		h.c.drop()
	}
}
