package wire

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/shell"
)

// ErrMoved means that another program has the session now, under the same name. Nothing was done. A
// client that can find that program asks it instead: see [Client.Follow].
var ErrMoved = errors.New("another program has the session now")

// gate is what requests pass that wait for the session's shell. While it is shut they wait in front of
// it. Its methods are safe for concurrent use. The zero value is open.
type gate struct {
	mu    sync.Mutex
	users int           // that have passed, and are not through
	free  chan struct{} // closed when there are none; nil unless somebody waits for that
	shut  chan struct{} // closed when the gate opens again; nil while it is open
	moved bool          // it opens no more
}

// enter passes the gate. It waits while that is shut, and, if there is a limit, no longer than that: the
// error is then shell.ErrBusy, as for a command that waits for its turn. The caller must call leave.
func (g *gate) enter(ctx context.Context, limit time.Duration) (leave func(), err error) {
	ctx, cancel := within(ctx, limit)
	defer cancel()
	if err := g.whenOpen(ctx, func() { g.users++ }); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.users--; g.users == 0 && g.free != nil {
			close(g.free)
			g.free = nil
		}
	}), nil
}

// close shuts the gate, and waits until all who have passed have left: nobody uses the shell then. The
// limit is that of enter. After an error the gate is as it was. Else the caller must call open, once.
func (g *gate) close(ctx context.Context, limit time.Duration) (open func(moved bool), err error) {
	ctx, cancel := within(ctx, limit)
	defer cancel()
	free := make(chan struct{})
	if err := g.whenOpen(ctx, func() {
		if g.shut = make(chan struct{}); g.users > 0 {
			g.free = free
		} else {
			close(free)
		}
	}); err != nil {
		return nil, err
	}
	open = func(moved bool) {
		g.mu.Lock()
		defer g.mu.Unlock()
		close(g.shut)
		g.shut, g.free, g.moved = nil, nil, moved
	}
	select {
	case <-free:
		return open, nil
	case <-ctx.Done():
		open(false)
		return nil, limits.NotBegun(ctx)
	}
}

// whenOpen waits until the gate is open, and does something before that can change.
func (g *gate) whenOpen(ctx context.Context, do func()) error {
	for {
		g.mu.Lock()
		shut := g.shut
		switch {
		case g.moved:
			g.mu.Unlock()
			return ErrMoved
		case shut == nil:
			do()
			g.mu.Unlock()
			return nil
		}
		g.mu.Unlock()
		select {
		case <-shut:
		case <-ctx.Done():
			return limits.NotBegun(ctx)
		}
	}
}

// within limits ctx to the time that a request waits for its turn; 0 is no limit.
func within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, limit, shell.ErrBusy)
}

// hasMoved reports whether the gate was opened for good.
func (g *gate) hasMoved() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.moved
}
