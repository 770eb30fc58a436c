package jobs

import (
	"regexp"
	"time"
)

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
