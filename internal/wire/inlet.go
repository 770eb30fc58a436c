package wire

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// inlet is the standard input of a command, which comes in pieces. Each says where it begins, so
// that one that comes twice counts once.
type inlet struct {
	mu    sync.Mutex
	b     []byte
	next  int64 // the offset of the next piece
	eof   bool
	cut   error // nil unless the client was away for too long before it had sent all
	ended bool  // nobody reads any more
	news  chan struct{}
}

func newInlet() *inlet { return &inlet{news: make(chan struct{})} }

// told wakes those who wait. The caller holds mu.
func (in *inlet) told() {
	close(in.news)
	in.news = make(chan struct{})
}

// Read waits for a piece. It ends when all has come, and when the command has ended. It fails if the client that sends the pieces does not come
// back: to the command that is an end as well, but what came of the command has the error then.
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
		case in.cut != nil:
			defer in.mu.Unlock()
			return 0, in.cut
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
		switch end := offset + int64(len(b)); {
		case in.cut != nil: // First: the command may have ended by its early end of input.
			defer in.mu.Unlock()
			return took{Next: in.next}, in.cut
		case in.ended:
			defer in.mu.Unlock()
			return took{Next: in.next, Ended: true}, nil
		case offset > in.next:
			defer in.mu.Unlock()
			return took{Next: in.next}, fmt.Errorf("the piece begins at %d, and the next one is at %d", offset, in.next)
		case in.eof && end > in.next:
			defer in.mu.Unlock()
			return took{Next: in.next}, fmt.Errorf("the piece goes to %d, and the input was said to end at %d", end, in.next)
		case len(in.b) == 0:
			defer in.mu.Unlock()
			if end > in.next {
				in.b = b[in.next-offset:]
				in.next = end
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

// abandon says that no more will come, since the client that sends it was away for too long. If the input has ended before, that means nothing.
func (in *inlet) abandon(away time.Duration) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.eof || in.ended || in.cut != nil {
		return
	}
	in.cut = fmt.Errorf("the client that sends it was away for %v: the command was given %d bytes and then the end of its input, which may be too early", away, in.next)
	in.told()
}

// end says that nobody reads any more.
func (in *inlet) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.ended, in.b = true, nil
	in.told()
}
