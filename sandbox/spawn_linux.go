package sandbox

import (
	"runtime"
	"sync"
)

// spawner runs functions on one thread. A parent-death signal follows the thread
// that forked, not the program (prctl(2), PR_SET_PDEATHSIG): a bwrap that was
// started on a thread which then ends dies with it. The thread is there while
// somebody holds the spawner.
type spawner struct {
	mu    sync.Mutex
	users int
	calls chan func()
}

var threads spawner

// hold keeps the thread until release.
func (s *spawner) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users++; s.users > 1 {
		return
	}
	s.calls = make(chan func())
	go func(calls chan func()) {
		runtime.LockOSThread() // Never unlocked: the thread ends with the goroutine.
		for call := range calls {
			call()
		}
	}(s.calls)
}

func (s *spawner) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 {
		close(s.calls)
	}
}

// do runs f on the thread, and waits for it. The caller holds the spawner.
func (s *spawner) do(f func()) {
	s.mu.Lock()
	calls := s.calls
	s.mu.Unlock()
	done := make(chan struct{})
	calls <- func() {
		defer close(done)
		f()
	}
	<-done
}
