package session

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

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
		_ = s.record(context.Background(), Record{Kind: CloseRecord, Err: s.err}) // It is closed.
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
	if registry, _ := s.r.opened(); registry != nil && !s.r.leaves() {
		end("its jobs", func() error {
			_, err := registry.StopAll(context.Background(), jobs.Filter{Session: s.name})
			return err
		})
	}
	running, err := s.terminals()
	if err != nil {
		end("its terminals", func() error { return err })
	}
	for _, t := range running {
		end("terminal "+t.ID(), func() error { return t.Close() })
	}
	ending.Wait()
	return failed
}

// remove takes a closed session out. What was to be told of one that nobody has closed is
// told to the next of its name.
func (r *Registry) remove(s *Session) {
	r.gather()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, s.name)
	if !s.reaped {
		r.notices.take(s.name)
	}
}

func (r *Registry) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Keys(r.sessions))
}

// Close closes all sessions, ends what is left of jobs and terminals, and waits for it. It
// is safe to call twice, and beside everything else. The error says what could not be
// ended.
func (r *Registry) Close() error { return r.close(false) }

// Leave is Close, but that jobs which are jobs.Detached run on: for whoever opens a registry with the same
// StateDir next.
func (r *Registry) Leave() error { return r.close(true) }

// leaves reports whether jobs that are detached are not to be ended.
func (r *Registry) leaves() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.leaving
}

func (r *Registry) close(leave bool) error {
	r.closeOne.Do(func() {
		defer close(r.over)
		r.mu.Lock()
		r.closed, r.leaving = true, leave
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
	r.overs.close()
	if r.program != nil {
		err = errors.Join(err, rundir.Remove(r.dir))
		r.program.Release()
	}
	return err
}
