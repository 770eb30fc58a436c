package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/limpet-sh/limpet/internal/supervisor"
)

// Write writes to what the job reads. It returns when the job, or the pipes before it,
// have taken it all: some 64 KiB may wait there. If that takes longer than two
// seconds the error is [ErrNotRead], and the number says how much was taken. Of two
// calls at the same time, up to 4 KiB come in one piece (pipe(7)).
func (r *Registry) Write(id string, p []byte) (int, error) { return r.write("write", id, p) }

func (r *Registry) write(op, id string, p []byte) (int, error) {
	if err := r.writable(op, id); err != nil {
		return 0, err
	}
	j, err := r.find(op, id)
	if err != nil {
		return 0, err
	}
	f, err := supervisor.OpenFIFO(j.path(supervisor.StdinFile))
	if err != nil {
		return 0, r.notWritten(op, j, err)
	}
	defer f.Close() // Each write says how it went.
	n, err := f.Write(p)
	if err != nil {
		return n, r.notWritten(op, j, err)
	}
	return n, nil
}

// Submit writes a line, as Write does: the text, and what the Enter key types.
func (r *Registry) Submit(id, text string) error {
	enter := "\n"
	if j, err := r.find("submit", id); err == nil && j.spec.PTY {
		enter = "\r"
	}
	_, err := r.write("submit", id, []byte(text+enter))
	return err
}

// CloseStdin lets the job read end-of-file, behind what was written. On a terminal it
// types Ctrl-D, which does so where a program reads lines. It does not wait for the
// job. A second call is [ErrNotPossible].
func (r *Registry) CloseStdin(id string) error {
	const op = "close stdin of"
	if err := r.writable(op, id); err != nil {
		return err
	}
	j, err := r.find(op, id)
	if err != nil {
		return err
	}
	if _, err := os.Stat(j.path(supervisor.StdinFile)); err != nil {
		return r.notWritten(op, j, err)
	}
	if err := supervisor.EndInput(j.dir); err != nil {
		return r.notWritten(op, j, err)
	}
	r.note(j, Event{Kind: EndOfFile})
	if !j.spec.PTY {
		_ = os.Remove(j.path(supervisor.StdinFile)) // Nobody writes behind it, from now on.
	}
	return nil
}

// Resize gives the job's terminal another size. The job gets a SIGWINCH.
func (r *Registry) Resize(id string, size Size) error {
	const op = "resize"
	if err := r.mine(op, id); err != nil {
		return err
	}
	j, job, err := r.get(op, id)
	switch {
	case err != nil:
		return err
	case !job.PTY:
		return &Error{Op: op, ID: id, Err: fmt.Errorf("%w: the job is on no terminal", ErrNotPossible), Remedy: "start it with PTY"}
	case job.State.Finished():
		return &Error{Op: op, ID: id, Err: ErrFinished}
	}
	if err := size.check(); err != nil {
		return &Error{Op: op, ID: id, Err: err}
	}
	if err := supervisor.Resize(j.dir, supervisor.Size{Rows: size.Rows, Cols: size.Cols}); err != nil {
		return r.notWritten(op, j, err)
	}
	return nil
}

// writable returns why the job cannot be written to, as far as that is known before.
func (r *Registry) writable(op, id string) error {
	if err := r.mine(op, id); err != nil {
		return err
	}
	_, job, err := r.get(op, id)
	switch {
	case err != nil:
		return err
	case job.State.Finished() || job.State == Ending:
		return &Error{Op: op, ID: id, Err: ErrFinished}
	case !job.Stdin:
		return &Error{Op: op, ID: id, Err: fmt.Errorf("%w: the job was started without stdin", ErrNotPossible), Remedy: "start it with Stdin or PTY"}
	}
	return nil
}

// notWritten says why it did not work after all.
func (r *Registry) notWritten(op string, j *job, err error) error {
	e := &Error{Op: op, ID: j.spec.ID, Err: err}
	switch {
	case errors.Is(err, supervisor.ErrGone), errors.Is(err, fs.ErrNotExist):
		e.Err = ErrFinished
		if f, err := j.settled(); err == nil {
			if state, _ := f.state(); !state.Finished() {
				e.Err, e.Remedy = fmt.Errorf("%w: its stdin is closed", ErrNotPossible), "it was closed before, or the job reads no more"
			}
		}
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Err, e.Remedy = ErrNotRead, "what was taken by now is not taken back"
	case errors.Is(err, syscall.EPIPE):
		e.Err = ErrFinished
	}
	return e
}
