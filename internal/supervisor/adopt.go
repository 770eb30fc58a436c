package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
)

// adopt takes over a process that the program waits for.
func (s *supervision) adopt() error {
	if s.order.Adopt == nil {
		return errors.New("the order names nothing to run")
	}
	s.process.Job, s.process.Started, s.process.Adopted = s.order.Adopt.Job, s.order.Adopt.Started, true
	s.process.StartedUp -= max(time.Since(s.process.Started), 0) // So far it is when this process was started.
	onPTY := s.order.PTY != nil
	out, err := inherited(filesFD, "output", onPTY)
	if err != nil {
		return err
	}
	in, heard := out, s.listen
	if onPTY {
		s.onTerminal(out)
		heard = s.typing
	} else {
		s.output = newOutput(out, false, s.log, s.beat, nil)
	}
	if s.order.Stdin && !onPTY {
		if in, err = inherited(filesFD+1, "stdin", false); err != nil {
			return err
		}
	}
	if s.order.Stdin || onPTY {
		if s.input, err = newInput(filepath.Join(s.order.Dir, StdinFile), in, onPTY, heard); err != nil {
			return err
		}
	}
	if err := s.record(); err != nil {
		return err
	}
	s.waits.begin(out, s.process.Job)
	go s.attend()
	return nil
}

// inherited is a descriptor of the program's, as a file that can be waited for: a
// pipe, or the master of a terminal.
func inherited(fd int, name string, pty bool) (*os.File, error) {
	if !pty && !isPipe(fd) {
		return nil, errors.New("the order came without the pipe for " + name)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// attend waits until the process has ended, and what it left. If the program does not
// say how, since it is gone, nobody knows.
func (s *supervision) attend() {
	defer close(s.alone)
	const look = time.Second // Where it cannot be waited for; else it is at once.
	for runs(s.process.Job) {
		proc.WaitAny([]proc.ID{s.process.Job}, look)
	}
	const patience = 2 * time.Second // With the program, which may have to tidy up first.
	select {
	case <-s.told:
	case <-time.After(patience):
		s.end(Exit{Code: -1, Unknown: true})
	}
	for members := s.target().Members(); len(members) > 0; members = s.target().Members() {
		ids := make([]proc.ID, 0, len(members))
		for _, m := range members {
			ids = append(ids, m.ID())
		}
		proc.WaitAny(ids, look)
	}
}

// end takes how an adopted process ended, from who is first to say it.
func (s *supervision) end(exit Exit) {
	s.once.Do(func() {
		s.ended <- exit
		close(s.told)
	})
}
