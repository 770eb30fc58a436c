package page

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/session"
)

// What another machine says may be wrong, or meant to do harm: it is looked at here before anything else sees it.

const (
	// mostTold bounds how many notices another machine tells in a minute: those of this one, and questions, shall be seen beside them.
	mostTold = 60

	mostAbout = 64 // bytes of the ID that a notice is about
)

var (
	eventKinds  = []session.EventKind{session.BeginEvent, session.OutputEvent, session.EndEvent, session.NoticeEvent}
	noticeKinds = []session.NoticeKind{session.JobEnded, session.JobMatched, session.JobWaits, session.TerminalEnded}
)

// farSession is a session of another machine.
type farSession struct {
	Session
	name string // on the page
	of   *elsewhere
}

func (s farSession) Created() time.Time { return sane(s.Session.Created()) }

func (s farSession) Events(ctx context.Context, after int64) ([]session.Event, error) {
	return behind(ctx, after, s.Session.Events, s.checked)
}

func (s farSession) Noticed(ctx context.Context, after int64) ([]session.Event, error) {
	return behind(ctx, after, s.Session.Noticed, func(list []session.Event) []session.Event {
		list = s.checked(list)
		for i := range list {
			if !s.of.told.allows(time.Now()) {
				return list[:i:i]
			}
		}
		return list
	})
}

var errNoNews = errors.New("the other machine says again what it has said")

// behind asks for events behind a number until some of them are to be shown. Those that are not, as the kinds of a newer limpet, are asked for
// no more: who asks again behind the same number would have them at once, again and again.
func behind(ctx context.Context, after int64, ask func(context.Context, int64) ([]session.Event, error), shown func([]session.Event) []session.Event) ([]session.Event, error) {
	for {
		list, err := ask(ctx, after)
		if err != nil || len(list) == 0 {
			return nil, err
		}
		last := list[len(list)-1].Seq
		if last <= after {
			return nil, errNoNews
		}
		after = last
		if list = shown(list); len(list) > 0 {
			return list, nil
		}
	}
}

// checked leaves out what is no event.
func (s farSession) checked(list []session.Event) []session.Event {
	list = slices.DeleteFunc(list, func(e session.Event) bool {
		return !slices.Contains(eventKinds, e.Kind) || e.Kind == session.NoticeEvent && (e.Notice == nil || !slices.Contains(noticeKinds, e.Notice.Kind))
	})
	for i := range list {
		e := &list[i]
		e.Session, e.Time = s.name, sane(e.Time)
		if e.Notice != nil {
			e.Notice = &session.Notice{Kind: e.Notice.Kind, About: cut(e.Notice.About, mostAbout), Text: cut(e.Notice.Text, mostError)}
		}
	}
	return list
}

// sane is a time that JSON can have: another machine may say one of any year and zone.
func sane(t time.Time) time.Time {
	t = t.UTC()
	if year := t.Year(); year < 0 || year > 9999 {
		return time.Time{}
	}
	return t
}

// checkedRecord returns a record as it is shown, and false if it is none.
func checkedRecord(l keeper.Listed) (keeper.Listed, bool) {
	r := &l.Record
	if !session.ValidName(r.Name) || !session.ValidName(r.ID) || !session.ValidName(r.SessionID()) { // An ID has the same characters.
		return l, false
	}
	r.Created = sane(r.Created)
	if end := r.End; end != nil {
		r.End = &keeper.End{At: sane(end.At), Why: cut(end.Why, mostBrief), Dir: cut(end.Dir, mostBrief), Running: cut(end.Running, mostBrief)}
	}
	if l.Info != nil {
		i := *l.Info
		i.State, i.Dir, i.Policy = session.State(cut(string(i.State), mostAbout)), cut(i.Dir, mostBrief), cut(i.Policy, mostBrief)
		i.Checkpoints = slices.DeleteFunc(slices.Clone(i.Checkpoints[:min(len(i.Checkpoints), mostElsewhere)]), func(name string) bool { return !session.ValidName(name) })
		l.Info = &i
	}
	return l, true
}

// perMinute allows so many things in each minute. It is safe for concurrent use.
type perMinute struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

func (p *perMinute) allows(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.since) >= time.Minute {
		p.since, p.n = now, 0
	}
	p.n++
	return p.n <= mostTold
}
