package ipc

import (
	"context"
	"time"

	"github.com/limpet-sh/limpet/internal/watch"
)

// Wake is what ended a wait.
type Wake int

// The reasons to be woken.
const (
	Reported Wake = iota // bash has reported
	Ended                // bash has ended without a report
	GaveUp               // the context has ended
	Asked                // somebody has asked for something else
	Enough               // Look has said so
)

// Wait says what is waited for besides the report, the end of bash, and that of the context.
// The zero value is nothing.
type Wait struct {
	// Look does what else is to be done now and then: first after the time First, and then
	// after the time that it returns. Enough ends the wait. Nil: there is nothing.
	Look  func() (again time.Duration, enough bool)
	First time.Duration

	// Asked ends the wait when something comes. Nil: nobody asks.
	Asked <-chan struct{}

	// reported is asked first, whatever has woken the waiter: the report wins.
	reported func() bool
}

// doubt is how often to look where there are events. They are the kernel's promise,
// and a command may have deleted the directory that they are about.
const doubt = 50 * time.Millisecond

// await is the one place that waits for bash.
func (x *Exchange) await(ctx context.Context, w Wait) Wake {
	if w.Look == nil {
		w.First = doubt
	}
	next := time.Now().Add(w.First)
	timer := time.NewTimer(x.pause(w.First))
	defer timer.Stop()
	for {
		why, ticked := Reported, false
		select {
		case <-x.events():
		case <-timer.C:
			ticked = true
		case <-x.conn.Done():
			why = Ended
		case <-ctx.Done():
			why = GaveUp
		case <-w.Asked:
			why = Asked
		}
		if w.reported() {
			return Reported
		}
		if why != Reported {
			return why
		}
		_ = x.Renew() // If that fails, the next look or the next command tries again.
		if !ticked {
			continue
		}
		pause := time.Until(next)
		if pause <= 0 {
			pause = doubt
			if w.Look != nil {
				var enough bool
				if pause, enough = w.Look(); enough {
					return Enough
				}
			}
			next = time.Now().Add(pause)
		}
		timer.Reset(x.pause(pause))
	}
}

// events is nil, and so never ready, when reports are polled for.
func (x *Exchange) events() <-chan struct{} {
	if x.watch == nil {
		return nil
	}
	return x.watch.C
}

// pause returns how long to wait without an event where that long is wanted.
func (x *Exchange) pause(wanted time.Duration) time.Duration {
	switch {
	case x.o.Poll > 0:
		return min(wanted, x.o.Poll)
	case x.watch.Err != nil:
		return min(wanted, watch.PollInterval)
	}
	return wanted
}
