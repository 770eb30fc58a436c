package wire

import (
	"context"
	"fmt"
	"io"
	"sync"
)

// inlet is the standard input of a command, which comes in pieces. Each says where it begins, so
// that one that comes twice counts once.
type inlet struct {
	mu    sync.Mutex
	b     []byte
	next  int64 // the offset of the next piece
	eof   bool
	ended bool // nobody reads any more
	news  chan struct{}
}

func newInlet() *inlet { return &inlet{news: make(chan struct{})} }

// told wakes those who wait. The caller holds mu.
func (in *inlet) told() {
	close(in.news)
	in.news = make(chan struct{})
}

// Read waits for a piece. It ends when all has come, and when the command has ended.
func (in *inlet) Read(p []byte) (int, error) {
	for {
		in.mu.Lock()
		switch {
		case in.ended:
			in.mu.Unlock()
			return 0, io.EOF
		case len(in.b) > 0:
			n := copy(p, in.b)
			in.b = in.b[n:]
			if len(in.b) == 0 {
				in.b = nil
				in.told() // There is room.
			}
			in.mu.Unlock()
			return n, nil
		case in.eof:
			in.mu.Unlock()
			return 0, io.EOF
		}
		news := in.news
		in.mu.Unlock()
		<-news
	}
}

// put takes a piece, when the one before it was read, and returns the offset of the next. Of
// what it has already it takes nothing.
func (in *inlet) put(ctx context.Context, offset int64, b []byte, eof bool) (took, error) {
	for {
		in.mu.Lock()
		if in.ended {
			defer in.mu.Unlock()
			return took{Next: in.next, Ended: true}, nil
		}
		if offset > in.next {
			defer in.mu.Unlock()
			return took{Next: in.next}, fmt.Errorf("the piece begins at %d, and the next one is at %d", offset, in.next)
		}
		if len(in.b) == 0 {
			defer in.mu.Unlock()
			have := min(in.next-offset, int64(len(b)))
			if b = b[have:]; len(b) > 0 && !in.eof {
				in.b = b
				in.next += int64(len(b))
			}
			in.eof = in.eof || eof
			in.told()
			return took{Next: in.next}, nil
		}
		news := in.news
		in.mu.Unlock()
		select {
		case <-news:
		case <-ctx.Done():
			return took{}, context.Cause(ctx)
		}
	}
}

// finish says that no more will come.
func (in *inlet) finish() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.eof = true
	in.told()
}

// end says that nobody reads any more.
func (in *inlet) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended, in.b = true, nil
	in.told()
}
