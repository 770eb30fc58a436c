package terminal

import (
	"context"
	"io"
	"math"
	"sync"
)

// Now attaches behind what was printed so far.
const Now int64 = math.MaxInt64

// Viewer follows what a program prints. Any number may: the program waits for none of
// them. It is for one goroutine, but for Close.
type Viewer struct {
	id      string
	out     *ring
	next    int64
	live    int64
	printed <-chan struct{} // closed when no more will come, before the output itself says so; may be nil
	done    chan struct{}
	closer  sync.Once
}

// Attach returns a viewer that begins at an offset: first what is kept from there on, then
// what comes, without a gap that is not told and without anything twice. A negative
// offset counts from the end, 0 is the first byte that was printed, and [Now] the next.
// It also works when the program has ended. The viewer needs no Close for its own sake.
// It is an error of a terminal that another program has.
func (t *Terminal) Attach(offset int64) (*Viewer, error) {
	d, err := t.seen("attach")
	if err != nil {
		return nil, err
	}
	start, end := d.out.bounds()
	if offset < 0 {
		offset = max(end+offset, start)
	}
	return &Viewer{id: t.id, out: d.out, next: min(offset, end), live: end, done: make(chan struct{})}, nil
}

// chunkMax bounds one Chunk.
const chunkMax = wholeBlock

// Next waits for output, and returns it. A viewer that is slower than the program and the
// buffer get on is told what it has missed. The error is io.EOF behind the last byte
// that the program has printed before its end, that of ctx, or ErrClosed.
func (v *Viewer) Next(ctx context.Context) (Chunk, error) {
	for {
		select {
		case <-v.done:
			return Chunk{}, &Error{Op: "follow", ID: v.id, Err: errViewer}
		default:
		}
		if ctx.Err() != nil { // Also while there is output.
			return Chunk{}, context.Cause(ctx)
		}
		last := v.allPrinted() // Before the read: what comes between the two would be missed.
		at, data, changed := v.out.read(v.next)
		if last {
			changed = nil
		}
		c := Chunk{Offset: at, Data: data[:min(len(data), chunkMax)], Missed: at - v.next}
		v.next = at + int64(len(c.Data))
		switch {
		case len(c.Data) > 0:
			return c, nil
		case changed == nil && c.Missed > 0:
			return c, nil // What it has missed was the last.
		case changed == nil:
			return Chunk{}, io.EOF
		}
		select {
		case <-changed:
		case <-v.printed:
		case <-v.done:
		case <-ctx.Done():
			return Chunk{}, context.Cause(ctx)
		}
	}
}

func (v *Viewer) allPrinted() bool {
	select {
	case <-v.printed:
		return true
	default:
		return false
	}
}

// Snapshot is where what was printed before the Attach ends, and what came since begins.
func (v *Viewer) Snapshot() int64 { return v.live }

// Offset is that of the next byte.
func (v *Viewer) Offset() int64 { return v.next }

// Close ends a Next that waits. It is safe to call twice, and from anywhere.
func (v *Viewer) Close() error {
	v.closer.Do(func() { close(v.done) })
	return nil
}
