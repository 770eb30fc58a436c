package proc

import "sync"

// sharer lets those that ask at the same moment share one answer. None of them gets
// an answer that was being made before they asked: it might miss what they have just
// done.
type sharer[T any] struct {
	ask  func() (T, error)
	turn chan struct{} // has a token while an answer is made

	mu   sync.Mutex
	next *answer[T] // which nobody has begun to make; nil if nobody waits for one
}

type answer[T any] struct {
	made  chan struct{} // closed when it is
	value T
	err   error
}

func newSharer[T any](ask func() (T, error)) *sharer[T] {
	return &sharer[T]{ask: ask, turn: make(chan struct{}, 1)}
}

func (s *sharer[T]) get() (T, error) {
	s.mu.Lock()
	if a := s.next; a != nil {
		s.mu.Unlock()
		<-a.made
		return a.value, a.err
	}
	a := &answer[T]{made: make(chan struct{})}
	s.next = a
	s.mu.Unlock()

	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	s.mu.Lock()
	s.next = nil // Those who ask from here on ask for the one after this.
	s.mu.Unlock()
	defer close(a.made)
	a.value, a.err = s.ask()
	return a.value, a.err
}
