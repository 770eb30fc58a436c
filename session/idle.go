package session

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// reaper closes sessions that nobody uses. Its timer ends with close.
type reaper struct {
	r     *Registry
	after time.Duration // 0: never

	mu    sync.Mutex
	timer *time.Timer
	done  bool
	busy  sync.WaitGroup
}

func newReaper(r *Registry, after time.Duration) *reaper { return &reaper{r: r, after: after} }

// soon sees to it that the reaper looks, when a session may have been idle for long
// enough.
func (p *reaper) soon() { p.again(p.after) }

func (p *reaper) again(in time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after == 0 || p.done || p.timer != nil {
		return
	}
	p.timer = time.AfterFunc(in, p.look)
}

// look closes those that are idle, and comes again when the next one may be.
func (p *reaper) look() {
	p.mu.Lock()
	p.timer = nil
	if p.done {
		p.mu.Unlock()
		return
	}
	p.busy.Add(1)
	p.mu.Unlock()
	defer p.busy.Done()

	p.r.mu.Lock()
	all := slices.Collect(maps.Values(p.r.sessions))
	p.r.mu.Unlock()
	next := p.after
	for _, s := range all {
		if left := s.reap(p.after); left > 0 {
			next = min(next, left)
		}
	}
	if len(all) > 0 {
		p.again(max(next, p.after/100)) // Not at once, whatever the clock says.
	}
}

func (p *reaper) close() {
	p.mu.Lock()
	p.done = true
	if p.timer != nil {
		p.timer.Stop()
	}
	p.mu.Unlock()
	p.busy.Wait()
}

// reap closes the session if it is idle for so long, or returns when it may be.
func (s *Session) reap(after time.Duration) (left time.Duration) {
	due := func() time.Duration {
		if s.uses > 0 {
			return after
		}
		last := s.lastUsed
		if s.lastActive.After(last) {
			last = s.lastActive
		}
		return time.Until(last.Add(after))
	}
	s.mu.Lock()
	left = due()
	s.mu.Unlock()
	if left > 0 {
		return left
	}
	if s.isActive() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lastActive = time.Now()
		return after
	}
	s.mu.Lock()
	left = due() // Somebody may have come meanwhile.
	if left <= 0 {
		s.closing, s.reaped = true, true // From here on nobody comes.
	}
	s.mu.Unlock()
	if left > 0 {
		return left
	}
	s.r.lapse(s, after)
	if err := s.Close(); err != nil {
		s.r.opts.Logger.Warn("limpet: closing an idle session", "session", s.name, "err", err)
	}
	return after
}

// isActive reports whether something runs in the session though nobody uses it.
func (s *Session) isActive() bool {
	if jobs, terminals, err := s.active(); err != nil || jobs+terminals > 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Second) // It waits for nobody but a save of the state.
	defer cancel()
	background, err := s.Background(ctx)
	return err != nil || len(background) > 0
}

// mostLapsed bounds what is remembered of sessions that are gone.
const mostLapsed = 1000

// lapse remembers that a session is closed for being idle, for the next one of its name.
func (r *Registry) lapse(s *Session, after time.Duration) {
	r.opts.Logger.Info("limpet: closing an idle session", "session", s.name, "idle", after)
	s.mu.Lock()
	used := s.sh != nil
	s.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if used && len(r.lapsed) < mostLapsed {
		r.lapsed[s.name] = fmt.Sprintf("the session was closed after it had not been used for %v, and is a new one: its directory, variables, functions and checkpoints are gone", after)
	}
}
