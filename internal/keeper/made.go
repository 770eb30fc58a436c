package keeper

import (
	"fmt"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/watch"
)

// answersSoon is the first pause before List is worth another look: the directory of a session is there before its keeper answers. Each pause is twice as
// long as the one before, up to answersLate.
const (
	answersSoon = 200 * time.Millisecond
	answersLate = 30 * time.Second
)

// Made returns a channel that has something when there may be new sessions: List has them, or will have them soon, when there is
// something again. The caller must call done, which waits for what Made has started.
func (r *Registry) Made() (news <-chan struct{}, done func(), err error) {
	fail := func(err error) (<-chan struct{}, func(), error) {
		return nil, nil, fmt.Errorf("waiting for new sessions: %w", err)
	}
	if err := private.MkdirAll(r.Dir()); err != nil {
		return fail(err)
	}
	w, err := watch.Dir(r.Dir())
	if err != nil {
		return fail(err)
	}
	found, ended := make(chan struct{}, 1), make(chan struct{})
	tell := func() {
		select {
		case found <- struct{}{}:
		default: // It looks anyway.
		}
	}
	go func() {
		defer close(ended)
		soon := time.NewTimer(0)
		defer soon.Stop()
		wait := answersSoon / 2
		for {
			select {
			case one, open := <-w.Events:
				if !open {
					return
				}
				if one.Has(fsnotify.Create) {
					tell()
					wait = answersSoon
					soon.Reset(wait)
				}
			case _, open := <-w.Errors: // Of changes that are not told.
				if !open {
					return
				}
				tell()
			case <-soon.C: // One that is slow to start is looked for again.
				tell()
				if wait *= 2; wait <= answersLate {
					soon.Reset(wait)
				}
			}
		}
	}()
	return found, func() { _ = w.Close(); <-ended }, nil
}
