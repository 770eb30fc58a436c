package transfer

import (
	"context"
	"sync"
	"time"
)

// remoteWriter sends chunks, several at a time. The last one is held back until it is known whether it is the last of the file:
// a small file is one request.
type remoteWriter struct {
	r       *Remote
	in      request // what all requests have in common
	restart bool    // nothing was sent yet, and what is there from before is of no use
	offset  int64   // of the chunk that is held back
	chunk   []byte  // nil if there is none

	life   context.Context // of the requests that fly: without one of them the others would wait for their turn in vain
	end    context.CancelCauseFunc
	flying sync.WaitGroup
	mu     sync.Mutex
	err    error // the first one of those that fly
}

var _ Writer = (*remoteWriter)(nil)

func (w *remoteWriter) failed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// next is the request with the chunk that was held back.
func (w *remoteWriter) next(end *End) request {
	in := w.in
	in.Offset, in.chunk, in.Restart, in.End = w.offset, w.chunk, w.restart, end
	w.offset += int64(len(w.chunk))
	w.chunk, w.restart = nil, false
	return in
}

func (w *remoteWriter) send(ctx context.Context, in request) error {
	var said wrote
	err := w.r.call(ctx, "write", in, &said)
	if err == nil && (said.Next < in.Offset+int64(len(in.chunk)) || in.End != nil && !said.Done) {
		err = errBehind
	}
	return err
}

// Write implements [Writer].
func (w *remoteWriter) Write(ctx context.Context, offset int64, b []byte) error {
	if err := w.failed(); err != nil {
		return err
	}
	if offset == 0 {
		w.restart = true
	}
	if w.chunk == nil {
		w.offset, w.chunk = offset, append(make([]byte, 0), b...)
		return nil
	}
	in := w.next(nil)
	w.offset, w.chunk = offset, append(make([]byte, 0), b...)
	if in.Restart {
		return w.send(w.life, in) // Alone: the others must not come before it.
	}
	select {
	case w.r.flight <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	w.flying.Go(func() {
		defer func() { <-w.r.flight }()
		err := w.send(w.life, in)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err != nil && w.err == nil {
			w.err = err
			w.end(err)
		}
	})
	return nil
}

// Commit implements [Writer].
func (w *remoteWriter) Commit(ctx context.Context, end End) error {
	err := w.send(w.life, w.next(&end))
	failed := w.failed()
	w.end(err) // With the last one all are there, or none of the others will do.
	w.flying.Wait()
	if failed != nil && err != nil {
		err = failed // It came first.
	}
	if err != nil && ctx.Err() != nil { // Else the other side has let go of it, or cannot be told.
		w.release(noRoom(context.Cause(ctx)))
	}
	return err
}

// Keep implements [Writer].
func (w *remoteWriter) Keep() { w.release(false) }

// Discard implements [Writer].
func (w *remoteWriter) Discard() { w.release(true) }

// release tells the other side that no more comes. If it cannot be told it finds out by itself.
func (w *remoteWriter) release(discard bool) {
	w.end(nil)
	w.flying.Wait()
	const patience = 3 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	in := w.in
	in.Discard = discard
	_ = w.r.call(ctx, "release", in, &struct{}{}) // As said.
}
