package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/jobs"
)

// Close ends the session: the command that runs, its shell and what that left running, its
// jobs and its terminals. It waits for all of it. It is safe to call twice, and beside
// everything else. What its jobs and terminals have printed can still be read. The error
// says what could not be ended.
func (s *Session) Close() error {
	s.closeOne.Do(func() {
		defer close(s.over)
		s.mu.Lock()
		s.closing = true
		s.mu.Unlock()
		s.cancel(ErrClosed)
		s.starting <- struct{}{} // A start that was under way is over. Nobody gets it again.
		s.mu.Lock()
		sh := s.sh
		s.mu.Unlock()
		var ending sync.WaitGroup
		if sh != nil {
			ending.Go(func() { _ = sh.Close() }) // It cannot fail.
		}
		s.err = s.endRest()
		ending.Wait()
		s.busy.Wait() // Whoever was at it got ErrClosed from the shell.
		s.err = errors.Join(s.err, s.endRest())
		s.r.remove(s)
	})
	<-s.over
	return s.err
}

// endRest ends the jobs and the terminals of the session, at the same time.
func (s *Session) endRest() error {
	var ending sync.WaitGroup
	var mu sync.Mutex
	var failed error
	end := func(what string, f func() error) {
		ending.Go(func() {
			if err := f(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failed = errors.Join(failed, s.fail("close", fmt.Errorf("%s: %w", what, err)))
			}
		})
	}
	if registry, _ := s.r.opened(); registry != nil {
		end("its jobs", func() error {
			_, err := registry.StopAll(context.Background(), jobs.Filter{Session: s.name})
			return err
		})
	}
	for _, t := range s.terminals() {
		end("terminal "+t.ID(), func() error { return t.Close() })
	}
	ending.Wait()
	return failed
}

// remove takes a closed session out.
func (r *Registry) remove(s *Session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.name)
	r.notices.take(s.name)
}

func (r *Registry) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.sessions))
}

// Close closes all sessions, ends what is left of jobs and terminals, and waits for it. It
// is safe to call twice, and beside everything else. The error says what could not be
// ended.
func (r *Registry) Close() error {
	r.closeOne.Do(func() {
		defer close(r.over)
		r.mu.Lock()
		r.closed = true
		all := slices.Collect(maps.Values(r.sessions))
		r.mu.Unlock()
		r.reaper.close()
		var ending sync.WaitGroup
		errs := make([]error, len(all))
		for i, s := range all {
			ending.Go(func() { errs[i] = s.Close() })
		}
		ending.Wait()
		r.err = errors.Join(errors.Join(errs...), r.release())
	})
	<-r.over
	return r.err
}

// release lets go of what sessions share.
func (r *Registry) release() error {
	r.opening.Lock()
	defer r.opening.Unlock()
	var err error
	if r.jobs != nil {
		err = r.jobs.Close()
	}
	if r.attach != nil {
		err = errors.Join(err, r.attach.Close())
	}
	if r.terminals != nil {
		err = errors.Join(err, r.terminals.Close())
	}
	if r.program != nil {
		err = errors.Join(err, rundir.Remove(r.dir))
		r.program.Release()
	}
	return err
}

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
		return time.Until(s.lastUsed.Add(after))
	}
	s.mu.Lock()
	left = due()
	s.mu.Unlock()
	if left > 0 {
		return left
	}
	if s.isActive() {
		s.keep()
		return after
	}
	s.mu.Lock()
	left = due() // Somebody may have come meanwhile.
	if left <= 0 {
		s.closing = true // From here on nobody comes.
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
	if jobs, terminals := s.active(); jobs+terminals > 0 {
		return true
	}
	s.mu.Lock()
	sh := s.sh
	s.mu.Unlock()
	if sh == nil {
		return false
	}
	ctx, cancel := context.WithTimeout(s.ctx, time.Second) // It waits for nobody but a save of the state.
	defer cancel()
	background, err := sh.Background(ctx)
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
		r.lapsed[s.name] = fmt.Sprintf("the session was closed after it had not been used for %v, and is a new one: its directory, variables and functions are gone", after)
	}
}
