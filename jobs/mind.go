package jobs

import (
	"os"
	"regexp"
	"time"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/ipc"
)

// doubt is how often a job is looked at without an event: a supervisor that was killed
// raises none.
const (
	doubt  = time.Second
	seldom = time.Minute // where its end is told otherwise
)

// look starts to look after a job, until it is over.
func (r *Registry) look(j *job) { r.work.Go(func() { r.mind(j) }) }

// mind is the life of a job as its owner sees it: whenever something is new, match what
// it has printed, tell the end.
func (r *Registry) mind(j *job) {
	watch := ipc.Shared.Watch(j.dir)
	defer watch.Close()
	every, ended := doubt, (<-chan struct{})(nil)
	if handle := j.supervised(); handle != nil {
		every, ended = seldom, handle.Done() // That is told.
	}
	if _, err := os.Stat(j.dir); watch.Err != nil && err == nil { // Else it was forgotten just now.
		r.opts.Logger.Warn("limpet: polling for news of a job", "job", j.spec.ID, "interval", r.opts.Poll, "err", watch.Err)
		every = r.opts.Poll
	}
	patterns, _ := compile(j.spec.Watch) // They were compiled before.
	m := &matcher{r: r, j: j, patterns: patterns}
	ran, unreadable := false, false
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		f, err := j.read()
		select {
		case <-j.gone:
			return
		default:
		}
		if err != nil {
			if !unreadable {
				r.opts.Logger.Warn("limpet: a job cannot be read", "job", j.spec.ID, "err", err)
			}
			unreadable = true // It is said once.
		} else {
			state, _ := f.state()
			ran = ran || state == Running
			m.match(&f, state.Finished())
			if state.Finished() && f.exit == nil && f.present.Elsewhere == "" {
				r.recordLoss(j, &f, ran)
			}
			if state.Finished() {
				r.completed(j, &f)
				r.setOver(j, &f)
			}
			if state.Finished() && !f.present.Supervisor {
				r.retire.soon()
				return
			}
		}
		timer.Reset(m.next(every))
		select {
		case <-watch.C:
		case <-timer.C:
		case <-ended:
			ended, every = nil, doubt // What it has left, if it was killed, is nobody's to tell.
		case <-j.gone:
			return
		case <-r.closing:
			return
		}
	}
}

// recordLoss writes down that a job has ended unseen, so that it does not change any
// more. One that ran at the last look has ended just now, others when they said their
// last, as far as anybody knows.
func (r *Registry) recordLoss(j *job, f *files, ran bool) {
	ended := f.log.Changed
	switch {
	case ran:
		ended = time.Now()
	case ended.IsZero():
		ended = f.process.Started
	}
	exit := supervisor.Exit{Code: -1, Unknown: true, Ended: ended, Output: f.log.End}
	if !f.started {
		_, e := f.state()
		exit = supervisor.Exit{Code: -1, Failed: e.Why, Ended: j.spec.Created}
	}
	r.recordExit(j, exit)
}

// recordExit writes down how a job ended, in the place of its supervisor.
func (r *Registry) recordExit(j *job, exit supervisor.Exit) {
	j.mu.Lock()
	defer j.mu.Unlock()
	select {
	case <-j.gone:
		return // Its directory is being removed.
	default:
	}
	if err := supervisor.WriteExit(j.dir, exit); err != nil {
		r.opts.Logger.Warn("limpet: the end of a job could not be written down", "job", j.spec.ID, "err", err)
	}
}

// completed puts the end of a job into the queue, if it is to be told and was not.
func (r *Registry) completed(j *job, f *files) {
	memo := j.remembered()
	if !memo.Told && (j.spec.Notify || memo.Off) {
		job := r.present(j, f)
		r.queue.push(Event{Kind: Completed, Time: r.opts.now(), Job: &job}, j)
	}
}

// saw notes that the caller knows of the end of a job.
func (r *Registry) saw(j *job, job Job) {
	if r.opts.ReadOnly || !job.State.Finished() || j.remembered().Told {
		return
	}
	r.remember(j, func(m *memo) { m.Told = true })
	r.queue.withdraw(j)
}

// present is the job as callers get it.
func (r *Registry) present(j *job, f *files) Job {
	job := f.job(r.opts.now())
	if j.remembered().Off {
		job.Watch = nil
	}
	return job
}

// matcher looks for a job's watch patterns in what it prints.
type matcher struct {
	r        *Registry
	j        *job
	patterns []*regexp.Regexp
}

// match matches the lines that are new; at the end of the job the last one, too, which
// may have no newline. The first pattern that matches a line is told.
func (m *matcher) match(f *files, finished bool) {
	if len(m.patterns) == 0 {
		return
	}
	m.closeWindow()
	if memo := m.j.remembered(); memo.Off || memo.Told {
		m.patterns = nil // Nobody is told any more.
		return
	}
	m.j.mu.Lock()
	s := m.j.scanned
	m.j.mu.Unlock()
	err := s.scan(f.log, finished, func(line Match) bool {
		for i, re := range m.patterns {
			if text, ok := find(re, line.Text); ok {
				line.Text = text
				m.r.matched(m.j, m.j.spec.Watch[i], line)
				break
			}
		}
		return true
	})
	if err != nil {
		m.r.opts.Logger.Warn("limpet: the output of a job cannot be read", "job", m.j.spec.ID, "err", err)
	}
	m.j.mu.Lock()
	m.j.scanned = s
	m.j.mu.Unlock()
	m.r.rememberScan(m.j)
}

// shorten bounds a line in an event.
func shorten(text string) string {
	const most = 1 << 10
	if len(text) <= most {
		return text
	}
	return text[:runes.Whole([]byte(text[:most]))] + "..."
}

// next is when to look again.
func (m *matcher) next(every time.Duration) time.Duration {
	m.j.mu.Lock()
	due := m.j.window.due()
	m.j.mu.Unlock()
	if due.IsZero() || len(m.patterns) == 0 {
		return every
	}
	return max(min(every, due.Sub(m.r.opts.now())), time.Millisecond)
}

// closeWindow ends the job's window if it is over.
func (m *matcher) closeWindow() {
	now := m.r.opts.now()
	m.j.mu.Lock()
	dropped, ended := m.j.window.close(now)
	off := m.j.window.off
	m.j.mu.Unlock()
	if !ended || dropped == 0 {
		return
	}
	kind := Suppressed
	if off {
		kind = WatchOff
		m.r.remember(m.j, func(memo *memo) { memo.Off = true })
	}
	m.r.tellOf(m.j, Event{Kind: kind, Count: dropped})
}

// matched tells a match, if neither the job's window nor the breaker has anything
// against it.
func (r *Registry) matched(j *job, pattern string, line Match) {
	if memo := j.remembered(); memo.Off || memo.Told {
		return
	}
	now := r.opts.now()
	j.mu.Lock()
	ok := j.window.match(now)
	j.mu.Unlock()
	if !ok {
		return
	}
	r.releaseBreaker()
	r.mu.Lock()
	ok, tripped := r.breaker.allow(now)
	r.mu.Unlock()
	if tripped {
		r.queue.push(Event{Kind: BreakerTripped, Time: now, Count: r.opts.Watch.Burst}, nil)
		r.retire.soon()
	}
	if !ok {
		return
	}
	j.mu.Lock()
	j.window.told(now)
	j.untold = append(j.untold, line)
	j.mu.Unlock()
	r.tellOf(j, Event{Kind: Matched, Pattern: pattern, Line: line.Text, Number: line.Number, Offset: line.Offset})
}

// releaseBreaker closes the breaker if its time is over.
func (r *Registry) releaseBreaker() {
	now := r.opts.now()
	r.mu.Lock()
	dropped, released := r.breaker.release(now)
	r.mu.Unlock()
	if released {
		r.queue.push(Event{Kind: BreakerReleased, Time: now, Count: dropped}, nil)
	}
}

// tellOf puts an event about a job into the queue.
func (r *Registry) tellOf(j *job, event Event) {
	f, err := j.read()
	if err != nil {
		return // It was forgotten.
	}
	job := r.present(j, &f)
	event.Time, event.Job = r.opts.now(), &job
	r.note(j, event)
	r.queue.push(event, j)
}
