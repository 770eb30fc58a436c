package supervisor

import (
	"os"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/private"
)

// input copies what anybody writes to a fifo into what the job reads. Handing on waits
// until the job takes it.
type input struct {
	*drain // of the fifo
	path   string
	w      *os.File // the write end of a pipe, or the master of a terminal
	pty    bool
}

// openOwnFIFO makes a fifo for the owner of the directory alone. It is open for writing,
// too, and so never at its end.
func openOwnFIFO(path string) (*os.File, error) {
	if err := private.Mkfifo(path); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
}

// newInput starts to copy. before is called before each piece.
func newInput(path string, w *os.File, pty bool, before func()) (*input, error) {
	fifo, err := openOwnFIFO(path)
	if err != nil {
		if !pty {
			_ = w.Close() // Nothing was written.
		}
		return nil, err
	}
	const size = 4 << 10
	in := &input{path: path, w: w, pty: pty}
	in.drain = newDrain(fifo, size, func(b []byte) error {
		before()
		_, err := w.Write(b)
		return err
	})
	go func() {
		in.run()
		in.retire() // The job reads no more.
	}()
	return in, nil
}

// retire lets nobody write any more.
func (in *input) retire() { _ = os.Remove(in.path) } // It may be gone.

// endOfTransmission is what Ctrl-D types, which a terminal makes an end-of-file of
// (termios(3), VEOF).
const endOfTransmission = 4

// end lets the job read end-of-file behind all that was written by now.
func (in *input) end() {
	in.flush(0)
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.pty {
		_, _ = in.w.Write([]byte{endOfTransmission}) // If nobody reads it, nobody misses it.
		return
	}
	in.eof = true
	in.retire()
	_ = in.w.Close() // All was written.
}

// close ends the copying: the job has ended. It is safe to call twice.
func (in *input) close() {
	in.retire()
	// Wakes who hands on even while that waits. Of a terminal that nobody has open any
	// more, a write is tried without end, and without a pause. Reading goes on.
	_ = in.w.SetWriteDeadline(time.Unix(1, 0))
	in.drain.close()
}
