package main

import (
	"io"
	"sync"

	"github.com/limpet-sh/limpet/command"
)

// shared is limpet's standard input for scripts in a session that is kept, which take turns: what one has
// not taken is for the next. It reads ahead of none, but for what is under way when a script ends.
type shared struct {
	from io.Reader

	mu      sync.Mutex
	now     *turn // whose it is
	reading bool  // somebody reads from it
	b       []byte
	err     error
	news    chan struct{} // closed when there are some
}

// turn is the standard input of one script. Its end is that of all, or of the turn.
type turn struct{ s *shared }

// lend gives it to a request. Call end when that is over. A nil one gives nothing.
func (s *shared) lend(req *command.Request) (end func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &turn{s}
	s.now, req.Stdin = t, t
	s.told()
	return t.end
}

// told wakes those who wait. The caller holds mu.
func (s *shared) told() {
	if s.news != nil {
		close(s.news)
	}
	s.news = make(chan struct{})
}

func (t *turn) end() {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.s.now == t {
		t.s.now = nil
	}
	t.s.told()
}

func (t *turn) Read(p []byte) (int, error) {
	s := t.s
	for {
		s.mu.Lock()
		switch {
		case s.now != t:
			s.mu.Unlock()
			return 0, io.EOF
		case len(s.b) > 0:
			n := copy(p, s.b)
			s.b = s.b[n:]
			s.mu.Unlock()
			return n, nil
		case s.err != nil:
			err := s.err
			s.mu.Unlock()
			return 0, err
		case !s.reading:
			s.reading = true
			go s.read() // It ends with limpet, at the latest: nothing frees a read.
		}
		news := s.news
		s.mu.Unlock()
		<-news
	}
}

// read reads once.
func (s *shared) read() {
	b := make([]byte, 64<<10)
	n, err := s.from.Read(b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b, s.err, s.reading = b[:n], err, false
	s.told()
}
