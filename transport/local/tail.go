package local

import (
	"os"
	"sync"
	"syscall"
	"time"
)

// tailMax is how much of what bash itself says is kept.
const tailMax = 64 << 10

// tail drains a pipe and keeps the last of it. A process that bash left behind
// may hold the other end for as long as it likes: nothing waits for it.
type tail struct {
	r *os.File // nil when the stream goes to the caller's file

	mu   sync.Mutex
	kept []byte
}

func (t *tail) open(file *os.File, theirs *[]*os.File) (*os.File, error) {
	if file != nil {
		return file, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	t.r = r
	*theirs = append(*theirs, w)
	return w, nil
}

// drain ends at end-of-file or when close closes the pipe.
func (t *tail) drain() {
	if t.r == nil {
		return
	}
	raw, err := t.r.SyscallConn()
	if err != nil {
		return
	}
	eof := false
	for !eof && err == nil {
		err = raw.Read(func(fd uintptr) bool {
			var some bool
			some, eof = t.read(int(fd))
			return some || eof
		})
	}
}

// flush takes what is in the pipe now, without waiting for more.
func (t *tail) flush() {
	if t.r == nil {
		return
	}
	raw, err := t.r.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) { // It fails when the pipe is closed: then nobody asks.
		for {
			if some, _ := t.read(int(fd)); !some {
				return
			}
		}
	})
}

// read takes what one read(2) gives. Reading and keeping are one step, so that
// after flush nothing is on its way in another goroutine.
func (t *tail) read(fd int) (some, eof bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var buf [4 << 10]byte
	n, err := syscall.Read(fd, buf[:])
	if n > 0 {
		t.kept = append(t.kept, buf[:n]...)
		if over := len(t.kept) - tailMax; over > 0 {
			t.kept = append(t.kept[:0], t.kept[over:]...)
		}
		return true, false
	}
	return err == syscall.EINTR, n == 0 && err == nil
}

// forget drops what was written by now, what is still in the pipe included.
func (t *tail) forget() {
	t.flush()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = t.kept[:0]
}

func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte(nil), t.kept...)
}

func (t *tail) close() {
	if t.r != nil {
		_ = t.r.SetReadDeadline(time.Now()) // Wakes drain even while it reads.
		_ = t.r.Close()                     // Read only: nothing to lose.
	}
}
