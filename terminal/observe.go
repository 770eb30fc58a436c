package terminal

import (
	"sync"
	"time"
)

// Change is a step in the life of a terminal.
type Change struct {
	ID       string
	From, To State // From is empty when it was just made
	At       time.Time
	Info     Info // as it was then
}

// observers are told of changes, each by a goroutine of its own, so that none of them
// holds anybody up.
type observers struct {
	mu     sync.Mutex
	list   map[*observer]bool
	closed bool
	work   sync.WaitGroup
}

// observer is one of them. What it was not told yet is kept: a terminal changes three
// times at most.
type observer struct {
	tell func(Change)
	mu   sync.Mutex
	due  []Change
	busy bool // a goroutine tells it
	gone bool
}

// Observe has fn called for each change of a terminal from now on: those of this program,
// and those of others that are found to be lost. Calls come in order and one at a time,
// by a goroutine of the registry; fn may call the registry, but not Close it. The
// observer stays until stop is called, which does not wait for a call that is under
// way, or until the registry is closed, after its last change. stop is safe to call twice.
func (r *Registry) Observe(fn func(Change)) (stop func()) {
	o := &observer{tell: fn}
	r.observers.mu.Lock()
	defer r.observers.mu.Unlock()
	if r.observers.closed {
		return func() {}
	}
	if r.observers.list == nil {
		r.observers.list = make(map[*observer]bool)
	}
	r.observers.list[o] = true
	return func() {
		r.observers.mu.Lock()
		delete(r.observers.list, o)
		r.observers.mu.Unlock()
		o.mu.Lock()
		o.gone, o.due = true, nil
		o.mu.Unlock()
	}
}

func (all *observers) tell(c Change) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.closed {
		return
	}
	for o := range all.list {
		o.mu.Lock()
		if o.due = append(o.due, c); !o.busy {
			o.busy = true
			all.work.Go(o.run)
		}
		o.mu.Unlock()
	}
}

// run tells what is due. It ends when nothing is.
func (o *observer) run() {
	for {
		o.mu.Lock()
		if len(o.due) == 0 || o.gone {
			o.busy = false
			o.mu.Unlock()
			return
		}
		next := o.due[0]
		o.due = o.due[1:]
		o.mu.Unlock()
		o.tell(next)
	}
}

// close waits until all was told.
func (all *observers) close() {
	all.mu.Lock()
	all.closed = true
	all.mu.Unlock()
	all.work.Wait()
}
