package page

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/session"
)

// Elsewhere is another machine whose sessions are shown. They have the name NAME@TARGET on the page, and questions the ID ID@TARGET. A Place
// that has a method Down, as host.Host has, is not waited for while that says why there is no connection.
type Elsewhere struct {
	Target string // as people call it
	Place  keeper.Place
	Asks   questions.Desk // where its questions are; nil: they are not shown
	Desk   Desk           // of those
}

// Places has the sessions of this machine, and those of others. Close it behind the [Handler], and the Places of others behind it.
type Places struct {
	desk   Desk
	here   *keeper.Registry
	asking string
	others []*elsewhere

	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup // the goroutines that ask other machines
}

// FromPlaces returns the sessions of a place of this machine, and of others. Asking is the directory in which programs ask people: see
// [keeper.Registry.Questions].
func FromPlaces(here *keeper.Registry, asking string, desk Desk, others ...Elsewhere) *Places {
	p := &Places{desk: desk, here: here, asking: asking}
	p.life, p.end = context.WithCancel(context.Background())
	for _, one := range others {
		p.others = append(p.others, newElsewhere(one))
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
	return append(latest(ctx, p, func(e *elsewhere) *inquiry[keeper.Listed] { return &e.sessions }), here...), nil
}

// Machines implements [Sessions].
func (p *Places) Machines() (list []Machine) {
	for _, one := range p.others {
		m := Machine{Target: one.Target}
		if err := one.sessions.failed(); err != nil {
			m.Error = cut(err.Error(), mostError)
		}
		list = append(list, m)
	}
	return list
}

// Open implements [Sessions].
func (p *Places) Open(ctx context.Context, name string) (Session, error) {
	place := keeper.Place(p.here)
	own, one := p.split(name)
	if own == "" {
		return nil, &session.Error{Op: "open", Session: name, Err: session.ErrNotFound}
	}
	if one != nil {
		if err := one.down(); err != nil {
			return nil, err
		}
		place = one.Place
	}
	k, err := place.Session(ctx, own, nil)
	if err != nil {
		return nil, err
	}
	if one != nil {
		if !session.ValidName(k.Record.ID) || !session.ValidName(k.Record.SessionID()) { // An ID has the same characters.
			k.Disconnect()
			return nil, errNoID
		}
		return farSession{Session: kept{k}, name: name, of: one}, nil
	}
	return kept{k}, nil
}

var errNoID = errors.New("the other machine says an ID that is none")

// split returns the name of a session, or the ID of a question, as its machine has it, and that machine; nil is this one. The name is empty if there
// is no such machine.
func (p *Places) split(name string) (own string, one *elsewhere) {
	own, target, isElsewhere := strings.Cut(name, "@")
	if !isElsewhere {
		return own, nil
	}
	for _, one := range p.others {
		if one.Target == target {
			return own, one
		}
	}
	return "", nil
}

// Questions implements [Sessions]: those of this machine are the first.
func (p *Places) Questions(ctx context.Context) ([]questions.Open, error) {
	here, err := questions.List(ctx, p.asking)
	if err != nil {
		return nil, err
	}
	return append(here, latest(ctx, p, func(e *elsewhere) *inquiry[questions.Open] { return &e.questions })...), nil
}

// Question implements [Sessions]. It waits for the machine that asks.
func (p *Places) Question(ctx context.Context, id string) (q questions.Open, err error) {
	var list []questions.Open
	switch own, one := p.split(id); {
	case own == "", one != nil && one.Asks == nil:
		return q, questions.ErrNotOpen
	case one == nil:
		list, err = questions.List(ctx, p.asking)
	default:
		list, err = one.listQuestions(ctx)
	}
	if err != nil {
		return q, err
	}
	if i := slices.IndexFunc(list, func(q questions.Open) bool { return q.ID == id }); i >= 0 {
		return list[i], nil
	}
	return q, questions.ErrNotOpen
}

// AwaitQuestion implements [Sessions].
func (p *Places) AwaitQuestion(ctx context.Context, known func(id string) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	found := make(chan error, 2) // One of each is read.
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer cancel()
	waiting.Go(func() { found <- questions.Dir(p.asking).AwaitOther(ctx, known) })
	if slices.ContainsFunc(p.others, func(e *elsewhere) bool { return e.Asks != nil }) {
		waiting.Go(func() {
			for ctx.Err() == nil {
				list := latest(ctx, p, func(e *elsewhere) *inquiry[questions.Open] { return &e.questions })
				if slices.ContainsFunc(list, func(q questions.Open) bool { return !known(q.ID) }) {
					found <- nil
					return
				}
				pause := time.NewTimer(questionPause)
				select {
				case <-pause.C:
				case <-ctx.Done():
				}
				pause.Stop()
			}
		})
	}
	return <-found
}

// Sheet implements [Desk].
func (p *Places) Sheet(q questions.Open) Sheet {
	desk, q, _ := p.deskOf(q)
	if desk == nil { // It is of a machine that is none of these.
		return Sheet{}
	}
	return desk.Sheet(q)
}

// Answer implements [Desk].
func (p *Places) Answer(ctx context.Context, q questions.Open, a Answer) (said string, err error) {
	desk, q, err := p.deskOf(q)
	if err != nil {
		return "", err
	}
	return desk.Answer(ctx, q, a)
}

// deskOf returns where a question is answered, and the question as it is there.
func (p *Places) deskOf(q questions.Open) (Desk, questions.Open, error) {
	own, one := p.split(q.ID)
	switch {
	case own == "" || one != nil && one.Asks == nil:
		return nil, q, questions.ErrNotOpen
	case one == nil:
		return p.desk, q, nil
	}
	q.ID, q.Session = own, strings.TrimSuffix(q.Session, "@"+one.Target)
	return one.Desk, q, nil
}

// Made implements [Sessions]. Of other machines it tells nothing.
func (p *Places) Made() (news <-chan struct{}, done func(), err error) { return p.here.Made() }

// validName reports whether a session on the page can have such a name.
func validName(name string) bool {
	own, target, isElsewhere := strings.Cut(name, "@")
	return session.ValidName(own) && (!isElsewhere || target != "")
}

// at is what a person writes at a terminal to name a session by a flag, or a question by its ID: with the machine, if it is another one.
func at(name string) string {
	own, target, isElsewhere := strings.Cut(name, "@")
	if !isElsewhere {
		return own
	}
	return own + " --on " + script.Quote(target)
}
