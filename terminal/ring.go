package terminal

import (
	"bytes"
	"sync"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// ring is the last part of what a program has printed, by its offset in all of it. One
// goroutine writes, and any number read.
//
// It is made of blocks that are written once, from their beginning to their end. What
// was committed does not change any more, so readers get it as it lies there, without a
// copy and without holding anything: a block that has left the ring lives as long as
// somebody reads it.
type ring struct {
	limit int64

	mu      sync.Mutex
	blocks  []*block    // the oldest first
	end     int64       // how much there was in all
	lines   int64       // of which so many newlines
	over    bool        // no more will come
	ground  *resumption // the end, if it is between two sequences
	changed chan struct{}
}

// block is consecutive output.
type block struct {
	offset int64
	data   []byte // what was committed; its capacity is the room for more

	// start is a place in the block where an emulator can begin that knows
	// nothing of what was before; nil if there is none yet.
	start *resumption
}

// resumption is a place between two sequences of the output, and what a terminal has to
// know there.
type resumption struct {
	offset int64
	modes  screen.Modes
}

// The sizes of blocks: the first is small since many programs say little.
const (
	firstBlock  = 4 << 10
	secondBlock = 16 << 10
	wholeBlock  = 64 << 10
	leastRoom   = 1 << 10 // for a read: less is not worth the system call
)

func newRing(limit int64) *ring { return &ring{limit: limit} }

// room is where the next output is to be put. It is for the one that writes.
func (r *ring) room() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.blocks)
	if n == 0 || cap(r.blocks[n-1].data)-len(r.blocks[n-1].data) < leastRoom {
		size := wholeBlock
		switch {
		case r.end == 0:
			size = firstBlock
		case r.end < secondBlock:
			size = secondBlock
		}
		r.blocks = append(r.blocks, &block{offset: r.end, data: make([]byte, 0, size), start: r.ground})
	}
	b := r.blocks[len(r.blocks)-1]
	return b.data[len(b.data):cap(b.data)]
}

// commit says that n bytes were put there, and where the state of the terminal is known
// behind them; nil if that is in the middle of a sequence.
func (r *ring) commit(n int, modes *screen.Modes) {
	r.mu.Lock()
	b := r.blocks[len(r.blocks)-1]
	fresh := b.data[len(b.data) : len(b.data)+n]
	b.data = b.data[:len(b.data)+n]
	r.end += int64(n)
	r.lines += int64(bytes.Count(fresh, newline))
	r.ground = nil
	if modes != nil && (b.start == nil || cap(b.data)-len(b.data) < leastRoom) { // Nobody asks for others.
		r.ground = &resumption{offset: r.end, modes: *modes}
	}
	if b.start == nil {
		b.start = r.ground
	}
	drop := 0
	for drop < len(r.blocks)-1 && r.end-r.blocks[drop+1].offset >= r.limit {
		drop++
	}
	if drop > 0 {
		kept := copy(r.blocks, r.blocks[drop:])
		clear(r.blocks[kept:]) // For the garbage collector.
		r.blocks = r.blocks[:kept]
	}
	r.tell()
}

var newline = []byte{'\n'}

// finish says that no more will come.
func (r *ring) finish() {
	r.mu.Lock()
	r.over = true
	r.tell()
}

// tell wakes whoever waits, and gives mu back.
func (r *ring) tell() {
	changed := r.changed
	r.changed = nil
	r.mu.Unlock()
	if changed != nil {
		close(changed)
	}
}

// bounds returns the offsets of the first byte that is kept, and behind the last.
func (r *ring) bounds() (start, end int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start(), r.end
}

func (r *ring) start() int64 {
	if len(r.blocks) == 0 {
		return r.end
	}
	return r.blocks[0].offset
}

// ended reports whether no more will come.
func (r *ring) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// counts are for an Info.
func (r *ring) counts() (start, end, lines int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.start(), r.end, r.lines
}

// read returns what lies at the offset, as much as lies in one piece, or at the first one
// behind it that is kept. Without data, changed is closed when there may be more; it
// is nil if no more will come.
func (r *ring) read(offset int64) (at int64, data []byte, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at = max(offset, r.start())
	if at < r.end {
		for i := len(r.blocks) - 1; ; i-- {
			if b := r.blocks[i]; b.offset <= at {
				return at, b.data[at-b.offset : len(b.data) : len(b.data)], nil
			}
		}
	}
	return at, nil, r.more()
}

// more is closed when there is more; it is nil if there will be none. The caller holds mu.
func (r *ring) more() <-chan struct{} {
	if r.over {
		return nil
	}
	if r.changed == nil {
		r.changed = make(chan struct{})
	}
	return r.changed
}

// after returns the end, and what is closed when more comes; nil if no more will.
func (r *ring) after() (end int64, changed <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.end, r.more()
}

// tail returns a copy of the last bytes, n at most.
func (r *ring) tail(n int64) (at int64, data []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at = max(r.end-n, r.start())
	data = make([]byte, 0, r.end-at)
	for _, b := range r.blocks {
		if skip := at - b.offset; skip < int64(len(b.data)) {
			data = append(data, b.data[max(skip, 0):]...)
		}
	}
	return at, data
}

// resume returns the first place of those kept at which an emulator can begin; false if
// there is none.
func (r *ring) resume() (resumption, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.start() == 0 {
		return resumption{}, true // The beginning is as good as any.
	}
	for _, b := range r.blocks {
		if b.start != nil {
			return *b.start, true
		}
	}
	return resumption{}, false
}

// ringOf is the ring of a program that has ended.
func ringOf(offset int64, data []byte) *ring {
	r := &ring{end: offset + int64(len(data)), over: true}
	if len(data) > 0 {
		r.blocks = []*block{{offset: offset, data: data}}
	}
	return r
}
