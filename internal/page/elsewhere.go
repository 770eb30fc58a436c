package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/session"
)

const (
	// mostElsewhere bounds the sessions, and the questions, of another machine that are shown.
	mostElsewhere = 100

	// elsewherePatience is how long a list waits for another machine, before it has what that has said last.
	elsewherePatience = 500 * time.Millisecond

	// dialPatience is how long a machine is waited for that is being dialled again, while nobody waits for its answer.
	dialPatience = time.Minute

	// questionPause is how often another machine is asked for its questions while somebody is to be told of them.
	questionPause = 2 * time.Second
)

// elsewhere is a machine, and what is known of it.
type elsewhere struct {
	Elsewhere
	sessions  inquiry[keeper.Listed]
	questions inquiry[questions.Open]
	told      perMinute // notices
}

func newElsewhere(of Elsewhere) *elsewhere {
	e := &elsewhere{Elsewhere: of}
	e.sessions.ask, e.sessions.stale, e.sessions.err = e.listSessions, mute, errNoAnswer
	e.questions.stale = func([]questions.Open) []questions.Open { return nil }
	if e.Asks != nil {
		e.questions.ask = e.listQuestions
	}
	return e
}

// down returns why there is no connection, if the machine's place tells.
func (e *elsewhere) down() error {
	if place, tells := e.Place.(interface{ Down() error }); tells {
		return place.Down()
	}
	return nil
}

// listSessions asks for the sessions, by the names that they have on the page. Another machine may say anything.
func (e *elsewhere) listSessions(ctx context.Context) (shown []keeper.Listed, err error) {
	list, err := e.Place.List(ctx, true)
	for _, one := range lastOf(list, mostElsewhere) {
		if one, ok := checkedRecord(one); ok {
			one.Record.Name += "@" + e.Target
			shown = append(shown, one)
		}
	}
	return shown, err
}

// mute returns sessions of which no more is known than that there were such.
func mute(list []keeper.Listed) []keeper.Listed {
	list = slices.Clone(list) // Others read it.
	for i := range list {
		list[i].Info = nil
	}
	return list
}

// listQuestions asks for the questions, by the IDs that they have on the page, and of sessions by the names that those have.
func (e *elsewhere) listQuestions(ctx context.Context) (shown []questions.Open, err error) {
	list, err := e.Asks.List(ctx)
	for _, one := range list[:min(len(list), mostElsewhere)] {
		one.ID += "@" + e.Target
		if session.ValidName(one.Session) {
			one.Session += "@" + e.Target
		} else {
			one.Session = ""
		}
		shown = append(shown, one)
	}
	return shown, err
}

// inquiry is something that a machine is asked for, once at a time, and the last answer.
type inquiry[T any] struct {
	ask   func(context.Context) ([]T, error) // nil: nothing is asked
	stale func([]T) []T                      // what is left of an answer when there is no other one

	mu    sync.Mutex
	asked chan struct{} // closed when the answer is there that is waited for; nil: none is
	list  []T
	err   error // why that is not known now; nil: it is
}

var errNoAnswer = errors.New("it has not answered yet")

func (q *inquiry[T]) failed() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.err
}

// latest returns what all other machines say. Where one takes its time that is its last answer, and the next one is under way.
func latest[T any](ctx context.Context, p *Places, what func(*elsewhere) *inquiry[T]) (all []T) {
	lists := make([][]T, len(p.others))
	var asking sync.WaitGroup
	for i, e := range p.others {
		if q := what(e); q.ask != nil {
			asking.Go(func() { lists[i] = q.latest(ctx, p, e) })
		}
	}
	asking.Wait()
	return slices.Concat(lists...)
}

func (q *inquiry[T]) latest(ctx context.Context, p *Places, of *elsewhere) []T {
	q.mu.Lock()
	if q.asked == nil && p.life.Err() == nil {
		q.asked = make(chan struct{})
		p.work.Go(func() { q.answer(p.life, of) })
	}
	asked := q.asked
	q.mu.Unlock()
	if of.down() == nil {
		patience := time.NewTimer(elsewherePatience)
		defer patience.Stop()
		select {
		case <-asked:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := of.down(); err != nil { // What is asked waits until the machine is reached again.
		q.list, q.err = q.stale(q.list), err
	}
	return q.list
}

// answer asks, and takes the answer.
func (q *inquiry[T]) answer(ctx context.Context, of *elsewhere) {
	patience := askPatience
	if of.down() != nil {
		patience = dialPatience // It is not dialled any more when nobody waits.
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it has not answered within %v", patience))
	defer cancel()
	list, err := q.ask(ctx)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		list, err = q.stale(q.list), cmp.Or(of.down(), err)
	}
	q.list, q.err = list, err
	close(q.asked)
	q.asked = nil
}
