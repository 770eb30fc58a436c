package jobs

import (
	"slices"
	"sync"
)

// queueMax bounds the events that nobody takes. Completions are at most as many as
// there are jobs, and are the last to be dropped.
const queueMax = 1024

// queue has the events that were not taken yet. They can be taken by Drain, from a
// channel, or by a callback, and each is taken once.
type queue struct {
	r *Registry

	mu     sync.Mutex // before that of a job, never the other way round
	events []queued
	missed int
	some   chan struct{} // has a token if there may be an event for the pump
	offer  *offer        // what the pump tries to pass on

	out     chan Event
	pumping sync.Once
	done    chan struct{}
	pumps   sync.WaitGroup
}

type queued struct {
	Event
	of    *job // whose it is; nil if it is about all of them
	about *job // whose completion it is; nil: it is about no completion
}

// offer is the first event, on its way out. It can be called back until somebody has
// it.
type offer struct {
	cancel func()
	over   chan struct{} // closed when it was taken, or called back
}

// lock locks mu, while no event is on its way out.
func (q *queue) lock() {
	for {
		q.mu.Lock()
		o := q.offer
		if o == nil {
			return
		}
		o.cancel()
		q.mu.Unlock()
		<-o.over
	}
}

func newQueue(r *Registry) *queue {
	return &queue{r: r, some: make(chan struct{}, 1), out: make(chan Event), done: make(chan struct{})}
}

// start starts the callback's goroutine, if there is a callback.
func (q *queue) start() {
	if call := q.r.opts.OnEvent; call != nil {
		q.pump()
		q.pumps.Go(func() {
			for event := range q.out {
				call(event)
			}
		})
	}
}

// Events returns the channel of the events. It is closed by Close. Who receives from
// it takes the events from Drain, and from others who receive. A completion is not
// sent if its job was seen to have ended meanwhile. The channel of a registry that is
// only read is closed.
func (r *Registry) Events() <-chan Event {
	if r.opts.ReadOnly {
		none := make(chan Event)
		close(none)
		return none
	}
	r.queue.pump()
	return r.queue.out
}

// Drain takes the events that there are, the oldest first, and does not wait. After
// Close there are none: what was not taken is told to the next owner.
func (r *Registry) Drain() []Event {
	if r.opts.ReadOnly || r.refusal() != nil {
		return nil // What is left is the next owner's to tell.
	}
	q := r.queue
	q.lock()
	defer q.mu.Unlock()
	var events []Event
	for {
		event, ok := q.head()
		if !ok {
			return events
		}
		q.pop()
		events = append(events, event.Event)
	}
}

// push adds an event of a job; nil is for all of them.
func (q *queue) push(event Event, of *job) {
	about := of
	if event.Kind != Completed {
		about = nil
	}
	q.lock()
	defer q.mu.Unlock()
	if about != nil {
		if about.queued {
			return
		}
		about.queued = true
	}
	if len(q.events) >= queueMax {
		drop := max(slices.IndexFunc(q.events, func(e queued) bool { return e.about == nil }), 0)
		if e := q.events[drop]; e.Kind == Matched {
			e.of.matchDropped(e.Offset)
		}
		q.events = slices.Delete(q.events, drop, drop+1)
		q.missed++
	}
	q.events = append(q.events, queued{event, of, about})
	q.wake()
}

// has reports whether the completion of a job is, or was, in the queue.
func (q *queue) has(j *job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return j.queued
}

func (q *queue) wake() {
	select {
	case q.some <- struct{}{}:
	default: // It knows.
	}
}

// head is the next event. The caller holds mu.
func (q *queue) head() (queued, bool) {
	if q.missed > 0 {
		return queued{Event: Event{Kind: Missed, Time: q.r.opts.now(), Count: q.missed}}, true
	}
	if len(q.events) == 0 {
		return queued{}, false
	}
	return q.events[0], true
}

// pop takes the next event, which is told by that. The caller holds mu.
func (q *queue) pop() {
	if q.missed > 0 {
		q.missed = 0
		q.r.missedTold()
		return
	}
	switch e := q.events[0]; e.Kind {
	case Completed:
		q.r.remember(e.about, func(m *memo) { m.Told = true })
	case Matched:
		q.r.matchTold(e.of, e.Offset)
	}
	q.events = slices.Delete(q.events, 0, 1)
}

// withdraw takes the completion of a job out: the caller has seen the end. When it
// returns, nobody is told any more.
func (q *queue) withdraw(j *job) {
	q.lock()
	defer q.mu.Unlock()
	j.queued = true // None shall come.
	q.events = slices.DeleteFunc(q.events, func(e queued) bool { return e.about == j })
}

// pump starts to send events to the channel.
func (q *queue) pump() {
	q.pumping.Do(func() {
		q.pumps.Go(func() {
			defer close(q.out)
			for q.pass() {
			}
		})
	})
}

// pass sends one event, or waits for one. It reports false at the end.
func (q *queue) pass() bool {
	q.mu.Lock()
	event, ok := q.head()
	if !ok {
		q.mu.Unlock()
		select {
		case <-q.some:
			return true
		case <-q.done:
			return false
		}
	}
	canceled := make(chan struct{})
	o := &offer{cancel: sync.OnceFunc(func() { close(canceled) }), over: make(chan struct{})}
	q.offer = o
	q.mu.Unlock()

	sent, open := false, true
	select {
	case q.out <- event.Event:
		sent = true
	case <-canceled:
	case <-q.done:
		open = false
	}
	q.mu.Lock()
	if sent {
		q.pop()
	}
	q.offer = nil
	q.mu.Unlock()
	close(o.over)
	return open
}

// close ends the pump, and waits for the callback that runs.
func (q *queue) close() {
	close(q.done)
	q.pumping.Do(func() { close(q.out) })
	q.pumps.Wait()
}
