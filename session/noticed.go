package session

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal"
)

// Notice is an event that a person who does not watch may want to know. It is a value.
type Notice struct {
	Kind NoticeKind `json:"kind"`

	// About is the ID of the job or the terminal.
	About string `json:"about"`

	// Text says it in a sentence, in which nothing is escaped.
	Text string `json:"text"`
}

// NoticeKind says what a Notice is about.
type NoticeKind string

// The kinds of notices: a job has ended, has printed a line that it is watched for, or waits for what is typed on its terminal; the program
// of a terminal has ended by itself.
const (
	JobEnded      NoticeKind = "job_ended"
	JobMatched    NoticeKind = "job_matched"
	JobWaits      NoticeKind = "job_waits"
	TerminalEnded NoticeKind = "terminal_ended"
)

// mostNoticed is how many notices are remembered for those who ask for nothing else.
const mostNoticed = 256

// Noticed returns the events behind a number that are notices, as [Session.Events] does: 0 means all that are remembered, which are up to
// 256. Nobody is taken for watching commands by that. A command waits for nobody, and neither does a job.
func (s *Session) Noticed(ctx context.Context, after int64) ([]Event, error) {
	return s.r.events.noticedAfter(ctx, after)
}

// notice takes a notice down.
func (e *events) notice(session string, n Notice, at time.Time) {
	n.Text = runes.Brief(n.Text, mostNotice)
	e.mu.Lock()
	defer e.mu.Unlock()
	one := e.put(Event{Session: session, Kind: NoticeEvent, Notice: &n, Time: at})
	e.noticed = append(e.noticed, one)
	if extra := len(e.noticed) - mostNoticed; extra > 0 {
		e.noticed = append(e.noticed[:0:0], e.noticed[extra:]...)
	}
}

// mostNotice bounds the text of a notice, in characters: a line that matches may be long.
const mostNotice = 1000

// noticedAfter returns the notices behind a number, and waits until there are some.
func (e *events) noticedAfter(ctx context.Context, seq int64) ([]Event, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if seq > e.seq { // It is that of another registry, which this one has followed.
		seq = 0
	}
	for {
		for i, one := range e.noticed {
			if one.Seq > seq {
				return append([]Event(nil), e.noticed[i:]...), nil
			}
		}
		if err := e.await(ctx); err != nil {
			return nil, err
		}
	}
}

// historyOf makes a notice of an event of a job.
func (r *Registry) historyOf(e jobs.Event) {
	n := Notice{About: e.Job.ID}
	who := fmt.Sprintf("job %s (%s)", e.Job.ID, brief(e.Job.Command))
	switch e.Kind {
	case jobs.Ended:
		n.Kind, n.Text = JobEnded, who+" has ended: "+e.Why
		r.recordOver(e.Job.Session, e.Job.ID, e.Why)
	case jobs.Matched:
		n.Kind, n.Text = JobMatched, fmt.Sprintf("%s printed line %d: %s", who, e.Number, e.Line)
	case jobs.Waits:
		n.Kind, n.Text = JobWaits, who+": "+e.Why
	default:
		return
	}
	r.events.notice(e.Job.Session, n, e.Time)
}

// programNoticed makes a notice of a terminal whose program has ended by itself.
func (r *Registry) programNoticed(c terminal.Change, text, how string) {
	r.recordOver(c.Info.Session, c.ID, how)
	r.events.notice(c.Info.Session, Notice{TerminalEnded, c.ID, text}, time.Time{})
}

// overs writes down what has ended, in a goroutine that runs while there is something. The zero value is ready for use.
type overs struct {
	mu     sync.Mutex
	due    []Record
	busy   bool
	closed bool
	work   sync.WaitGroup
}

// recordOver writes down that a job or a terminal has ended, if that is asked for. It does not wait, as another program may hold the file.
func (r *Registry) recordOver(name, id, how string) {
	if r.opts.Record == nil {
		return
	}
	o := &r.overs
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return // It is about to be forgotten.
	}
	o.due = append(o.due, Record{Kind: OverRecord, Time: time.Now(), Session: name, Started: id, How: how})
	if !o.busy {
		o.busy = true
		o.work.Go(r.recordOvers)
	}
}

func (r *Registry) recordOvers() {
	o := &r.overs
	for {
		o.mu.Lock()
		if len(o.due) == 0 {
			o.busy = false
			o.mu.Unlock()
			return
		}
		one := o.due[0]
		o.due = o.due[1:]
		o.mu.Unlock()
		err := r.opts.Record(context.Background(), one)
		if err == nil {
			continue
		}
		r.opts.Logger.Warn("limpet: the end of a job or a terminal cannot be recorded", "id", one.Started, "err", err)
		r.mu.Lock()
		s := r.sessions[one.Session]
		r.mu.Unlock()
		if s != nil && !s.unrecorded.Swap(true) {
			s.Notify("what is done here cannot be recorded: " + err.Error())
		}
	}
}

// close waits until all is written down that has ended before.
func (o *overs) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.work.Wait()
}
