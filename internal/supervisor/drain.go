package supervisor

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"time"
)

// drain reads a file that can be waited for, in a goroutine of its own, and at any
// moment also all that is there by then. Reading and handing on are one step, so that
// nothing is on its way in another goroutine when flush returns.
type drain struct {
	f    *os.File
	each func([]byte) error // an error ends it
	over chan struct{}      // closed when there is nothing to come

	reopens bool // it may be at its end now, and not later: a terminal

	mu  sync.Mutex
	eof bool
	buf []byte
}

func newDrain(f *os.File, size int, each func([]byte) error) *drain {
	return &drain{f: f, each: each, over: make(chan struct{}), buf: make([]byte, size)}
}

// run ends at end-of-file, at an error, or when close closes the file.
func (d *drain) run() {
	defer close(d.over)
	raw, err := d.f.SyscallConn()
	for err == nil {
		var eof bool
		err = raw.Read(func(fd uintptr) bool {
			var some bool
			some, eof = d.take(int(fd))
			eof = eof && !d.reopens
			return some || eof
		})
		if eof {
			return
		}
	}
}

// take hands on what one read(2) gives.
func (d *drain) take(fd int) (some, eof bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.eof {
		return false, true
	}
	n, err := syscall.Read(fd, d.buf)
	switch {
	case n > 0:
		d.eof = d.each(d.buf[:n]) != nil
		return true, d.eof
	case errors.Is(err, syscall.EINTR):
		return true, false
	case errors.Is(err, syscall.EAGAIN):
		return false, false
	}
	// Of a terminal that nobody has open any more, EIO (pty(7)). A job may open it
	// again, by /dev/tty, which is an event.
	d.eof = !d.reopens || !errors.Is(err, syscall.EIO)
	return false, true
}

// flushMax bounds a flush: someone may write as fast as it reads.
const flushMax = 16 << 20

// flush takes what is there by now, and what comes before there was nothing for so
// long.
func (d *drain) flush(lag time.Duration) {
	raw, err := d.f.SyscallConn()
	if err != nil {
		return
	}
	const pause = time.Millisecond
	quiet := time.Now()
	for range flushMax / len(d.buf) {
		var some, eof bool
		if raw.Control(func(fd uintptr) { some, eof = d.take(int(fd)) }) != nil || eof {
			return
		}
		if some {
			quiet = time.Now()
			continue
		}
		if time.Since(quiet) >= lag {
			return
		}
		time.Sleep(pause)
	}
}

// close ends run, and waits for it. It is safe to call twice.
func (d *drain) close() {
	_ = d.f.SetReadDeadline(time.Unix(1, 0)) // Wakes run even while it reads.
	<-d.over
	_ = d.f.Close() // What was to be written was.
}
