package page

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/session"
)

const (
	// mostElsewhere bounds the sessions of another machine that are shown.
	mostElsewhere = 100

	// mostTarget is as many bytes as the name of another machine has.
	mostTarget = 1 << 10

	// elsewherePatience is how long the list waits for another machine, before it has what that has said last.
	elsewherePatience = 500 * time.Millisecond
)

// Elsewhere is another machine whose sessions are shown. They have the name NAME@TARGET on the page. A Place that has a method Down, as
// host.Host has, is not waited for while that says why there is no connection.
type Elsewhere struct {
	Target string // as people call it
	Place  keeper.Place
}

func (e Elsewhere) down() error {
	if place, tells := e.Place.(interface{ Down() error }); tells {
		return place.Down()
	}
	return nil
}

// Places has the sessions of this machine, and those of others. Close it behind the [Handler], and the Places of others behind it.
type Places struct {
	Desk
	here   *keeper.Registry
	asking string
	others []*elsewhere

	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup // the goroutines that ask other machines
}

// FromPlaces returns the sessions of a place of this machine, and of others. Asking is the directory in which programs ask people: see
// [keeper.Registry.Questions]. People are asked on this machine alone.
func FromPlaces(here *keeper.Registry, asking string, desk Desk, others ...Elsewhere) *Places {
	p := &Places{Desk: desk, here: here, asking: asking}
	p.life, p.end = context.WithCancel(context.Background())
	for _, one := range others {
		p.others = append(p.others, &elsewhere{Elsewhere: one, err: errNoAnswer})
	}
	return p
}

// Close ends what other machines are asked, and waits for that. It is safe to call twice.
func (p *Places) Close() {
	p.end()
	p.work.Wait()
}

// List implements [Sessions]: those of this machine are the last, however many others there are.
func (p *Places) List(ctx context.Context) ([]keeper.Listed, error) {
	here, err := p.here.List(ctx, true)
	if err != nil {
		return nil, err
	}
	lists := make([][]keeper.Listed, len(p.others))
	var asking sync.WaitGroup
	for i, one := range p.others {
		asking.Go(func() { lists[i] = p.latest(ctx, one) })
	}
	asking.Wait()
	var all []keeper.Listed
	for _, list := range lists {
		all = append(all, list...)
	}
	return append(all, here...), nil
}

// Machines implements [Sessions].
func (p *Places) Machines() (list []Machine) {
	for _, one := range p.others {
		one.mu.Lock()
		m := Machine{Target: one.Target}
		if one.err != nil {
			m.Error = cut(one.err.Error(), mostError)
		}
		one.mu.Unlock()
		list = append(list, m)
	}
	return list
}

// Open implements [Sessions].
func (p *Places) Open(ctx context.Context, name string) (Session, error) {
	place := keeper.Place(p.here)
	own, target, isElsewhere := strings.Cut(name, "@")
	if isElsewhere {
		one := p.other(target)
		if one == nil {
			return nil, &session.Error{Op: "open", Session: name, Err: session.ErrNotFound}
		}
		if err := one.down(); err != nil {
			return nil, err
		}
		place = one.Place
	}
	k, err := place.Session(ctx, own, nil)
	if err != nil {
		return nil, err
	}
	return kept{k}, nil
}

func (p *Places) other(target string) *elsewhere {
	for _, one := range p.others {
		if one.Target == target {
			return one
		}
	}
	return nil
}

// Questions implements [Sessions].
func (p *Places) Questions(ctx context.Context) ([]questions.Open, error) {
	return questions.List(ctx, p.asking)
}

// AwaitQuestion implements [Sessions].
func (p *Places) AwaitQuestion(ctx context.Context, known func(id string) bool) error {
	return questions.Dir(p.asking).AwaitOther(ctx, known)
}

// Made implements [Sessions]. Of other machines it tells nothing.
func (p *Places) Made() (news <-chan struct{}, done func(), err error) { return p.here.Made() }

// elsewhere is a machine, and what is known of its sessions.
type elsewhere struct {
	Elsewhere

	mu    sync.Mutex
	asked chan struct{}   // closed when the answer is there that is waited for; nil: nothing is asked
	list  []keeper.Listed // of the last answer
	err   error           // why that is not known now; nil: it is
}

var errNoAnswer = errors.New("it has not answered yet")

// latest returns the sessions of a machine. Where that takes its time they are those of the last answer, and the next one is under way.
func (p *Places) latest(ctx context.Context, e *elsewhere) []keeper.Listed {
	e.mu.Lock()
	if e.asked == nil && p.life.Err() == nil {
		e.asked = make(chan struct{})
		p.work.Go(func() { e.ask(p.life) })
	}
	asked := e.asked
	e.mu.Unlock()
	if e.down() == nil {
		patience := time.NewTimer(elsewherePatience)
		defer patience.Stop()
		select {
		case <-asked:
		case <-patience.C:
		case <-ctx.Done():
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.down(); err != nil {
		e.fails(err) // What is asked waits until it is reached again.
	}
	return e.list
}

// fails notes that the sessions do not answer. The caller holds mu.
func (e *elsewhere) fails(err error) {
	e.err = err
	e.list = slices.Clone(e.list) // The one before is read by others.
	for i := range e.list {
		e.list[i].Info = nil
	}
}

// ask asks for the list.
func (e *elsewhere) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, askPatience, fmt.Errorf("it has not answered within %v", askPatience))
	defer cancel()
	list, err := e.Place.List(ctx, true)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		e.list, e.err = e.shown(list), nil
	} else {
		e.fails(cmp.Or(e.down(), err))
	}
	close(e.asked)
	e.asked = nil
}

// shown returns sessions by the names that they have on the page. Another machine may say anything.
func (e *elsewhere) shown(list []keeper.Listed) (out []keeper.Listed) {
	for _, one := range lastOf(list, mostElsewhere) {
		if session.ValidName(one.Record.Name) {
			one.Record.Name += "@" + e.Target
			out = append(out, one)
		}
	}
	return out
}

// validName reports whether a session on the page can have such a name.
func validName(name string) bool {
	own, target, isElsewhere := strings.Cut(name, "@")
	return session.ValidName(own) && (!isElsewhere || target != "" && len(target) <= mostTarget)
}

// flags are those by which a command is about a session, for people.
func (w which) flags() string {
	own, target, isElsewhere := strings.Cut(w.name, "@")
	if !isElsewhere {
		return "-s " + own
	}
	return "-s " + own + " --on " + script.Quote(target)
}
