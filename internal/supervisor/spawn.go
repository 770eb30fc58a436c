package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/tty"
)

// spawn starts the job, below the supervisor.
func (s *supervision) spawn() (err error) {
	o := s.order
	// As os/exec has it: a missing directory is not to be taken for a missing program.
	if st, err := os.Stat(o.WorkDir); err != nil {
		return &os.PathError{Op: "chdir", Path: o.WorkDir, Err: errors.Unwrap(err)}
	} else if !st.IsDir() {
		return &os.PathError{Op: "chdir", Path: o.WorkDir, Err: syscall.ENOTDIR}
	}
	var ends childEnds
	defer ends.close() // The job has its own.
	streams, err := s.connect(&ends)
	if err != nil {
		return err
	}
	attr := &syscall.ProcAttr{
		Dir: o.WorkDir, Env: append(o.Env, o.Mark),
		Files: []uintptr{streams[0].Fd(), streams[1].Fd(), streams[2].Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: o.PTY != nil},
	}
	pid, err := syscall.ForkExec(o.Path, o.Argv, attr)
	if err != nil {
		return &os.PathError{Op: "execute", Path: o.Path, Err: err}
	}
	s.process.Job = proc.ID{PID: pid}
	if st, err := proc.Read(pid); err == nil { // It cannot be gone: nobody has waited for it.
		s.process.Job.Start = st.Start
	}
	s.waits.begin(s.output.f, s.process.Job)
	go s.reap(pid)
	if err := s.record(); err != nil {
		s.stop(ByShutdown) // Nobody would find it.
		<-s.ended
		return err
	}
	return nil
}

// childEnds are the job's ends of what connects it.
type childEnds []*os.File

func (e *childEnds) close() {
	for _, f := range *e {
		_ = f.Close() // Nothing was written by it here.
	}
}

// connect makes what the job reads and prints: a terminal, or pipes.
func (s *supervision) connect(ends *childEnds) (streams [3]*os.File, err error) {
	if s.order.PTY != nil {
		return s.connectPTY(ends)
	}
	in, err := s.connectStdin(ends)
	if err != nil {
		return streams, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return streams, err
	}
	*ends = append(*ends, w)
	s.output = newOutput(r, false, s.log, s.beat, nil)
	return [3]*os.File{in, w, w}, nil
}

func (s *supervision) connectStdin(ends *childEnds) (*os.File, error) {
	if !s.order.Stdin {
		null, err := os.Open(os.DevNull)
		if err == nil {
			*ends = append(*ends, null)
		}
		return null, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	*ends = append(*ends, r)
	s.input, err = newInput(filepath.Join(s.order.Dir, StdinFile), w, false, s.listen)
	return r, err
}

func (s *supervision) connectPTY(ends *childEnds) (streams [3]*os.File, err error) {
	master, slave, err := tty.Open(*s.order.PTY)
	if err != nil {
		return streams, err
	}
	*ends = append(*ends, slave)
	s.onTerminal(master)
	s.input, err = newInput(filepath.Join(s.order.Dir, StdinFile), master, true, s.typing)
	return [3]*os.File{slave, slave, slave}, err
}

// onTerminal copies what the job prints on a terminal, and looks who reads it.
func (s *supervision) onTerminal(master *os.File) {
	s.waits = &waits{dir: s.order.Dir, beat: s.beat}
	s.output = newOutput(master, true, s.log, s.beat, s.waits)
}

// typing is called before something is typed on the job's terminal.
func (s *supervision) typing() {
	s.listen()
	s.waits.wrote()
}
