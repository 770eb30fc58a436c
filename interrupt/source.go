// Package interrupt stops commands: who asks for it, and how it is done.
//
// A [Source] carries the wish: anybody may tell one session, or everything
// below a Source, to stop, with a reason that comes back in the error. A
// [Ladder] carries it out: signals with a grace in between, to processes and
// never to groups, with an [Outcome] that says what became of them.
package interrupt

import (
	"context"
	"sync"
)

// Source is where commands look whether they should stop. Sources form a tree:
// stopping one stops all below it. Its methods are safe for concurrent use.
// The zero value is a root. A nil Source never stops anything, and cannot be stopped: Stop and Clear panic.
type Source struct {
	parent *Source

	mu  sync.Mutex
	now *stop // what the next Stop fires; replaced by Clear
}

// stop is one wish to stop. Its reason never changes once it is set, so that a later Clear
// takes no reason away from anybody. The Source's mu guards it.
type stop struct {
	reason   error
	contexts map[*context.CancelCauseFunc]struct{} // that it cancels; nil once it has
}

// New returns a root.
func New() *Source { return &Source{} }

// Child returns a Source that stops when s does, or by itself.
func (s *Source) Child() *Source { return &Source{parent: s} }

// Stop interrupts what runs under s, and refuses what is started from now on,
// until Clear. When it returns, the contexts of s and those below are cancelled. A nil
// reason means [ErrInterrupted]. The first of several reasons stays.
func (s *Source) Stop(reason error) {
	if reason == nil {
		reason = ErrInterrupted
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.current(); now.reason == nil {
		now.reason = reason
		for cancel := range now.contexts {
			(*cancel)(&stopError{reason})
		}
		now.contexts = nil
	}
}

// Clear lets commands run again. What Stop interrupted stays interrupted. A
// Source that is not stopped is left alone.
func (s *Source) Clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current().reason != nil {
		s.now = nil
	}
}

// current returns what the next Stop fires. The caller holds mu.
func (s *Source) current() *stop {
	if s.now == nil {
		s.now = &stop{contexts: make(map[*context.CancelCauseFunc]struct{})}
	}
	return s.now
}

// Reason returns why s, or one above it, is stopped, and nil if none is.
func (s *Source) Reason() error {
	for ; s != nil; s = s.parent {
		s.mu.Lock()
		reason := s.current().reason
		s.mu.Unlock()
		if reason != nil {
			return reason
		}
	}
	return nil
}

// Refusal returns what a command that would start now is refused with: the
// reason, which also is ErrInterrupted, or nil.
func (s *Source) Refusal() error {
	if reason := s.Reason(); reason != nil {
		return &stopError{reason}
	}
	return nil
}

// stopError is a reason on its way: it is ErrInterrupted as well.
type stopError struct{ reason error }

func (e *stopError) Error() string        { return e.reason.Error() }
func (e *stopError) Unwrap() error        { return e.reason }
func (e *stopError) Is(target error) bool { return target == ErrInterrupted }

// Context returns a context that is cancelled when s or one above it stops. Its
// cause then wraps the reason, and ErrInterrupted. Call cancel: it frees what the context
// holds. Clearing the Source does not bring a cancelled context back.
func (s *Source) Context(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	ctx, cancelCause := context.WithCancelCause(ctx)
	key := &cancelCause
	var frees []func()
	for src := s; src != nil; src = src.parent {
		src.mu.Lock()
		now := src.current()
		if now.reason != nil {
			cancelCause(&stopError{now.reason}) // At once: nothing must start under it.
		} else {
			now.contexts[key] = struct{}{}
		}
		src.mu.Unlock()
		frees = append(frees, func() {
			src.mu.Lock()
			defer src.mu.Unlock()
			delete(now.contexts, key)
		})
	}
	return ctx, func() {
		cancelCause(context.Canceled)
		for _, free := range frees {
			free()
		}
	}
}
