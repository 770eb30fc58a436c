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
	seen   []known           // ends that callers know of, and that may be queued later; the last mostSeen
}

// known is the end of a job or a terminal that callers know of.
type known struct {
	about    string
	callers  int    // how many have seen it, or have taken a notice of it
	session  string // where withheld belongs
	withheld notice // the notice of it that is not told; its text is empty if none came
}

// mostSeen bounds what is remembered of ends that callers know. It takes no longer than
// moments until they are queued; but a list may show hundreds of them, and be cancelled.
const mostSeen = 1000

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

// put queues a notice, unless it is of an end that callers know of: then it is withheld.
func (n *notices) put(session string, one notice) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k := n.find(one.about); k != nil {
		k.session, k.withheld = session, one
		return
	}
	n.queue(session).add(one)
}

// queue returns the queue of a session, and makes it if there is none. The caller holds mu.
func (n *notices) queue(session string) *queue {
	if n.queues == nil {
		n.queues = make(map[string]*queue)
	}
	q := n.queues[session]
	if q == nil {
		q = &queue{}
		n.queues[session] = q
	}
	return q
}

// add appends a notice, unless it is there, or the end that it tells is told by another one.
func (q *queue) add(one notice) {
	there := slices.ContainsFunc(q.list, func(other notice) bool {
		return other == one || one.about != "" && other.about == one.about
	})
	switch {
	case there:
	case len(q.list) >= mostNotices:
		q.dropped++
	default:
		q.list = append(q.list, one)
	}
}

// take empties a queue.
func (n *notices) take(session string) (taken queue) {
	n.mu.Lock()
	defer n.mu.Unlock()
	q := n.queues[session]
	if q == nil {
		return queue{}
	}
	delete(n.queues, session)
	for _, one := range q.list {
		n.know(one.about)
	}
	return *q
}

// texts are the notices of a queue as callers get them.
func (q queue) texts() (texts []string) {
	for _, one := range q.list {
		texts = append(texts, one.text)
	}
	if q.dropped > 0 {
		texts = append(texts, fmt.Sprintf("%d more notices were dropped", q.dropped))
	}
	return texts
}

// putBack undoes take: the notices are queued again, before those that came later. An end that another caller knows of
// meanwhile is withheld.
func (n *notices) putBack(session string, taken queue) {
	n.mu.Lock()
	defer n.mu.Unlock()
	later := n.queue(session)
	q := &queue{dropped: taken.dropped + later.dropped}
	n.queues[session] = q
	for _, one := range taken.list {
		n.forget(one.about)
		if k := n.find(one.about); k != nil {
			k.session, k.withheld = session, one
			continue
		}
		q.add(one)
	}
	for _, one := range later.list {
		q.add(one)
	}
}

// drop withholds the notice of the end of a job or a terminal, also one that is still to come: one caller more knows of it.
// "" is what notices are about that tell no end: they stay.
func (n *notices) drop(about string) {
	if about == "" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.know(about)
	k := n.find(about)
	for session, q := range n.queues {
		q.list = slices.DeleteFunc(q.list, func(one notice) bool {
			if one.about != about {
				return false
			}
			k.session, k.withheld = session, one
			return true
		})
	}
}

// undrop undoes drop. It returns what is known of the end if no caller knows of it any more, else nil.
func (n *notices) undrop(about string) *known {
	if about == "" {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	was := known{about: about}
	if k := n.find(about); k != nil {
		was = *k
	}
	if n.forget(about); n.find(about) != nil {
		return nil
	}
	return &was
}

// find returns what is known of an end, nil if no caller knows of it. The caller holds mu.
func (n *notices) find(about string) *known {
	i := slices.IndexFunc(n.seen, func(k known) bool { return k.about == about })
	if i < 0 {
		return nil
	}
	return &n.seen[i]
}

// know remembers that one caller more knows of an end; "" is none. The caller holds mu.
func (n *notices) know(about string) {
	if about == "" {
		return
	}
	k := n.find(about)
	if k == nil {
		n.seen = append(n.seen, known{about: about})
		n.seen = n.seen[max(0, len(n.seen)-mostSeen):]
		k = &n.seen[len(n.seen)-1]
	}
	k.callers++
}

// forget undoes know. The caller holds mu.
func (n *notices) forget(about string) {
	if k := n.find(about); k != nil {
		k.callers--
	}
	n.seen = slices.DeleteFunc(n.seen, func(k known) bool { return k.callers == 0 })
}

// Notices takes what has happened in the session since somebody asked last, a sentence
// each: jobs that ended, lines that they were watched for, terminals whose program ended by
// itself, what a sandbox refused, that the session of that name before it was closed for
// being idle. Each is told once, and at most 50 wait.
//
// Those of a session that is closed are for the next of its name, if it was closed for being
// idle; else they are gone.
func (s *Session) Notices() []string {
	texts, _ := s.TakeNotices()
	return texts
}

// TakeNotices is [Session.Notices] for a caller that may find out later that it cannot pass them on. Then it calls putBack,
// and the next caller gets them, before those that came meanwhile, except ends that another caller has seen by then. Calling
// putBack twice is calling it once. Those of a session that was closed meanwhile are for the next of its name, or gone, as with
// Notices.
func (s *Session) TakeNotices() (texts []string, putBack func()) {
	s.r.gather()
	if s.isClosing() {
		return nil, func() {}
	}
	taken := s.r.notices.take(s.name)
	return taken.texts(), sync.OnceFunc(func() {
		s.mu.Lock()
		reaped := s.reaped
		s.mu.Unlock()
		s.r.mu.Lock() // remove comes before or after.
		defer s.r.mu.Unlock()
		if reaped || s.r.sessions[s.name] == s {
			s.r.notices.putBack(s.name, taken)
		}
	})
}

func (s *Session) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// Seen takes back the notice that tells the end of a job or a terminal, by its ID, also one
// that is still to come: the caller has seen it. An empty ID is that of none.
func (r *Registry) Seen(id string) {
	r.gather()
	r.notices.drop(id)
}

// Unseen undoes one call of Seen, for a caller that could not pass on what it has seen. If no other caller knows of the end,
// the next Notices tell it, also that of a job whose registry takes it for told, as by [jobs.Registry.Log]. That other callers
// know is remembered of the last 1000 ends.
func (r *Registry) Unseen(id string) {
	k := r.notices.undrop(id)
	switch {
	case k == nil:
	case k.withheld.text != "":
		r.tell(k.session, k.withheld)
	default:
		registry, _ := r.opened()
		if registry == nil {
			return
		}
		job, err := registry.Get(id)
		if err == nil && job.State.Finished() && job.Exit != nil && job.Exit.Ended.After(r.made) { // Else it is old.
			r.tell(job.Session, toldOf(jobs.Event{Kind: jobs.Completed, Job: &job}))
		}
	}
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
