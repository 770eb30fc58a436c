package session

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal"
)

// notices is what there is to tell of sessions, until somebody asks.
type notices struct {
	mu     sync.Mutex
	queues map[string]*queue // by session
	seen   []string          // ids of what callers know to have ended: it may be queued later; the last mostSeen
}

// mostSeen bounds what is remembered of ends that callers know. It takes no longer than
// moments until they are queued.
const mostSeen = 100

// queue is what there is to tell of one session.
type queue struct {
	list    []notice
	dropped int
}

type notice struct {
	text  string
	about string // the id of a job or a terminal whose end it tells
}

// mostNotices bounds a queue: a session may be told of for hours while nobody asks.
const mostNotices = 50

// add queues a notice that is not about an end. What is queued already is not queued twice.
func (n *notices) add(session, text string) { n.put(session, notice{text: text}) }

func (n *notices) put(session string, one notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if one.about != "" && slices.Contains(n.seen, one.about) {
		return
	}
	if n.queues == nil {
		n.queues = make(map[string]*queue)
	}
	q := n.queues[session]
	if q == nil {
		q = &queue{}
		n.queues[session] = q
	}
	switch {
	case slices.Contains(q.list, one):
	case len(q.list) >= mostNotices:
		q.dropped++
	default:
		q.list = append(q.list, one)
	}
}

// take empties a queue.
func (n *notices) take(session string) (texts []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := n.queues[session]
	if q == nil {
		return nil
	}
	delete(n.queues, session)
	for _, one := range q.list {
		texts = append(texts, one.text)
		n.know(one.about)
	}
	if q.dropped > 0 {
		texts = append(texts, fmt.Sprintf("%d more notices were dropped", q.dropped))
	}
	return texts
}

// drop takes back what tells the end of a job or a terminal.
func (n *notices) drop(about string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.know(about)
	for _, q := range n.queues {
		q.list = slices.DeleteFunc(q.list, func(one notice) bool { return one.about == about })
	}
}

// know remembers that an end is known. The caller holds mu.
func (n *notices) know(about string) {
	if about != "" && !slices.Contains(n.seen, about) {
		n.seen = append(n.seen, about)
		n.seen = n.seen[max(0, len(n.seen)-mostSeen):]
	}
}

// Notices takes what has happened in the session since somebody asked last, a sentence
// each: jobs that ended, lines that they were watched for, terminals whose program ended by
// itself, what a sandbox refused, that the session of that name before it was closed for
// being idle. Each is told once, and at most 50 wait.
//
// Those of a session that is closed are for the next of its name, if it was closed for being
// idle; else they are gone.
func (s *Session) Notices() []string {
	s.r.gather()
	if s.isClosing() {
		return nil
	}
	return s.r.notices.take(s.name)
}

func (s *Session) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// Seen takes back the notice that tells the end of a job or a terminal, by its ID, also one
// that is still to come: the caller has seen it.
func (r *Registry) Seen(id string) {
	r.gather()
	r.notices.drop(id)
}

// gather queues what jobs have to tell.
func (r *Registry) gather() {
	registry, _ := r.opened()
	if registry == nil {
		return
	}
	for _, event := range registry.Drain() {
		if event.Job != nil {
			r.tell(event.Job.Session, toldOf(event))
			continue
		}
		for _, name := range r.names() {
			r.tell(name, toldOf(event))
		}
	}
	r.tellWatchedEnds(registry) // Behind what they have printed.
}

// tell queues a notice for a session that is there, or that was idle for too long.
func (r *Registry) tell(name string, one notice) {
	r.mu.Lock()
	_, lapsed := r.lapsed[name]
	wanted := lapsed || r.sessions[name] != nil
	r.mu.Unlock()
	if wanted {
		r.notices.put(name, one)
	}
}

// watch has the end of a job told that is watched: its registry tells what matches, or the
// end.
func (r *Registry) watch(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.watched = append(r.watched, id)
}

// tellWatchedEnds queues the ends of jobs that were watched.
func (r *Registry) tellWatchedEnds(registry *jobs.Registry) {
	var ended []jobs.Job
	r.mu.Lock()
	r.watched = slices.DeleteFunc(r.watched, func(id string) bool {
		job, err := registry.Get(id)
		if err == nil && job.State.Finished() {
			ended = append(ended, job)
		}
		return err != nil || job.State.Finished()
	})
	r.mu.Unlock()
	for _, job := range ended {
		r.tell(job.Session, toldOf(jobs.Event{Kind: jobs.Completed, Job: &job}))
	}
}

// toldOf says an event in a sentence.
func toldOf(e jobs.Event) notice {
	if e.Job == nil {
		switch e.Kind {
		case jobs.BreakerTripped:
			return notice{text: "jobs printed too many lines that they are watched for: no more matches are told for a while"}
		case jobs.BreakerReleased:
			return notice{text: fmt.Sprintf("matches of watched jobs are told again; %d were not", e.Count)}
		}
		return notice{text: fmt.Sprintf("%d events of jobs were not told", e.Count)}
	}
	who := fmt.Sprintf("job %s (%s)", e.Job.ID, brief(e.Job.Command))
	switch e.Kind {
	case jobs.Completed:
		return notice{text: who + " has ended: " + ending(*e.Job), about: e.Job.ID}
	case jobs.Matched:
		return notice{text: fmt.Sprintf("%s printed line %d, which matches %q: %s", who, e.Number, e.Pattern, e.Line)}
	case jobs.Waits:
		return notice{text: who + ": " + e.Why}
	case jobs.Suppressed:
		return notice{text: fmt.Sprintf("%s: %d more matches were not told", who, e.Count)}
	case jobs.WatchOff:
		return notice{text: who + " matched too often, and is watched no more: its end will be told"}
	}
	return notice{text: who + ": " + string(e.Kind)}
}

// ending says how a job has ended.
func ending(job jobs.Job) string {
	if job.Exit == nil {
		return string(job.State)
	}
	return job.Exit.String()
}

// programEnded queues that the program of a terminal has ended by itself.
func (r *Registry) programEnded(c terminal.Change) {
	if c.Info.Session == "" || !c.To.Ended() || c.To == terminal.Cancelled || c.From == terminal.Starting {
		return // One that never ran is told by who started it.
	}
	what := c.Info.Line
	if what == "" {
		what = strings.Join(c.Info.Argv, " ")
	}
	how := string(c.To)
	switch {
	case c.Info.Why != "":
		how += ", " + c.Info.Why
	case c.Info.Exit != nil:
		how += ", " + c.Info.Exit.String()
	}
	text := fmt.Sprintf("the program of terminal %s (%s) has ended: %s", c.ID, brief(what), how)
	r.tell(c.Info.Session, notice{text: text, about: c.ID})
	r.programNoticed(c, text, how)
}

// Notify queues something to tell, for the next Notices. Of a session that is closed it is
// dropped.
func (s *Session) Notify(text string) {
	if !s.isClosing() {
		s.r.notices.add(s.name, text)
	}
}

// brief names a command.
func brief(script string) string { return runes.Brief(script, 60) }
