package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/tty"
)

// What a supervisor can be told, a line of JSON each.
type message struct {
	EndInput bool   `json:"end_input,omitempty"` // let the job read end-of-file
	Stopping string `json:"stopping,omitempty"`  // somebody stops the job, and why
	Resize   *Size  `json:"resize,omitempty"`
	Exit     *Exit  `json:"exit,omitempty"` // how an adopted process ended
}

// ErrGone means that there is no supervisor to be told anything.
var ErrGone = errors.New("supervisor: it has ended")

// EndInput lets the job in dir read end-of-file, behind all that was written.
func EndInput(dir string) error { return tell(dir, message{EndInput: true}) }

// Stopping notes why the job is about to be stopped.
func Stopping(dir, why string) error { return tell(dir, message{Stopping: why}) }

// Resize gives the job's terminal another size.
func Resize(dir string, size Size) error { return tell(dir, message{Resize: &size}) }

// Ended says how an adopted process ended.
func Ended(dir string, exit Exit) error { return tell(dir, message{Exit: &exit}) }

// tell writes a message. It is shorter than what a pipe takes at once (PIPE_BUF), and
// never waits.
func tell(dir string, m message) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	f, err := OpenFIFO(filepath.Join(dir, ControlFile))
	if err != nil {
		return err
	}
	defer f.Close() // Each write says how it went.
	_, err = f.Write(append(b, '\n'))
	return err
}

// OpenFIFO opens a fifo of a job for writing. The error is [ErrGone] if there is
// nobody to read it. A full one is waited for until the file's deadline.
func OpenFIFO(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENXIO) {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || st.Mode().Type() != fs.ModeNamedPipe {
		_ = f.Close() // Nothing was written.
		return nil, fmt.Errorf("%s is no fifo: %w", path, errors.Join(err, fs.ErrInvalid))
	}
	const patience = 2 * time.Second
	_ = f.SetWriteDeadline(time.Now().Add(patience)) // A fifo can.
	return f, nil
}

// listen does what it was told by now: what is written next comes after it.
func (s *supervision) listen() { s.control.flush(0) }

// hear does what it is told, a line at a time.
func (s *supervision) hear(b []byte) error {
	s.unheard = append(s.unheard, b...)
	for {
		line, rest, found := bytes.Cut(s.unheard, []byte{'\n'})
		if !found {
			return nil
		}
		var m message
		if err := json.Unmarshal(line, &m); err == nil { // Else it was not written by us.
			s.obey(m)
		}
		s.unheard = rest
	}
}

func (s *supervision) obey(m message) {
	switch {
	case m.EndInput && s.input != nil:
		go s.input.end() // It waits until the job takes what is left.
	case m.Stopping != "":
		s.stopping(m.Stopping)
	case m.Resize != nil && s.output.pty:
		_ = tty.Resize(s.output.f, *m.Resize) // It was checked; the terminal may be gone.
	case m.Exit != nil && s.order.Adopt != nil:
		s.end(*m.Exit)
	}
}
