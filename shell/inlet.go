package shell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/ipc"
)

// inlet is what a command reads that runs in the shell itself: a named pipe, and a goroutine that
// copies a Reader to it. Bash waits, when it opens the pipe, until somebody does who writes; nobody
// else has it open, so that its end is the end of the Reader. A nil one does nothing.
type inlet struct {
	path string
	from io.Reader
	over chan struct{} // closed when the command has ended
	once sync.Once

	mu   sync.Mutex
	to   *os.File // while it is open
	done bool     // bash has all that it will get
	err  error    // of the Reader
}

// newInlet makes the pipe. Call end.
func (b *bash) newInlet(from io.Reader) (*inlet, error) {
	in := &inlet{path: filepath.Join(b.exchange.Path(), environ.NewID()), from: from, over: make(chan struct{})}
	err := private.Mkfifo(in.path)
	if err == nil {
		err = b.shell.owner.Give(in.path)
	}
	if err != nil {
		in.end()
		return nil, &ipc.DiskError{Dir: b.exchange.Path(), Err: fmt.Errorf("making a pipe: %w", err)}
	}
	return in, nil
}

// begin copies. It ends at the end of the Reader, or of the command; a Read that takes longer is not
// waited for.
func (in *inlet) begin() {
	if in == nil {
		return
	}
	go func() {
		if !in.open() {
			return
		}
		defer in.close()
		b := make([]byte, 64<<10)
		for {
			n, err := in.from.Read(b)
			if n > 0 {
				if _, err := in.to.Write(b[:n]); err != nil {
					return // Nobody reads any more, as with every pipe.
				}
			}
			if err != nil {
				in.fail(err)
				return
			}
			select {
			case <-in.over:
				return
			default:
			}
		}
	}()
}

// open waits until bash opens the pipe. It reports false if the command ends before that.
func (in *inlet) open() bool {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		to, err := os.OpenFile(in.path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err == nil {
			in.mu.Lock()
			in.to = to
			in.mu.Unlock()
			select {
			case <-in.over: // End may have missed it.
				in.close()
				return false
			default:
				return true
			}
		}
		// ENXIO is that nobody reads yet (fifo(7)). What else is wrong (too many files, say) may pass.
		if errors.Is(err, syscall.ENOENT) {
			return false
		}
		select {
		case <-time.After(pause):
		case <-in.over:
			return false
		}
	}
}

// close ends what bash reads.
func (in *inlet) close() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.done = true
	if in.to != nil {
		_ = in.to.Close() // What was written is bash's. A Write that waits ends.
	}
}

func (in *inlet) fail(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !errors.Is(err, io.EOF) {
		in.err = fmt.Errorf("shell: reading the command's stdin: %w", err)
	}
}

// end is for a command that has ended: what waits to be written is not wanted, and what it has left
// running reads no more than was written.
func (in *inlet) end() {
	if in == nil {
		return
	}
	in.once.Do(func() { close(in.over) })
	in.close()
	_ = os.Remove(in.path) // It may be gone, with all files of the session.
}

// copies reports whether there may be more to read than bash has.
func (in *inlet) copies() bool {
	if in == nil {
		return false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return !in.done
}

// failure is the error of the Reader, as far as it is known.
func (in *inlet) failure() error {
	if in == nil {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.err
}
