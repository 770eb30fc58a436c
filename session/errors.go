package session

import (
	"errors"
	"fmt"

	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/jobs"
)

// What is wrong with a call, for errors.Is. They come in an [*Error].
var (
	// ErrNotFound means that there is no session of that name, or no such checkpoint.
	ErrNotFound = errors.New("there is none of that name")

	// ErrExists means that there is a session of that name.
	ErrExists = errors.New("there is one of that name")

	// ErrName means that no session or checkpoint can have such a name.
	ErrName = errors.New("no name: wants 1 to 64 letters, digits, dots, dashes and underscores, of which the first is a letter or a digit")

	// ErrTooMany means that there are as many sessions as there may be.
	ErrTooMany = errors.New("too many sessions")

	// ErrClosed means that the session or the registry is closed, or was closed
	// meanwhile.
	ErrClosed = interrupt.ErrClosed
)

// Error says what could not be done, with which session, and what to do about it.
type Error struct {
	Op      string // open, fork, ...
	Session string // empty if it is not about one
	Err     error
	Remedy  string // empty where Err says so
}

func (e *Error) Error() string { return errtext.Of("session", e.Op, e.Session, e.Err, e.Remedy) }

func (e *Error) Unwrap() error { return e.Err }

// fail is an error of the session.
func (s *Session) fail(op string, err error) error {
	e := &Error{Op: op, Session: s.name, Err: err}
	if errors.Is(err, ErrClosed) {
		e.Remedy = openAgain
	}
	return e
}

const openAgain = "open it again"

// ofShell is an error of the session's shell for those who have the session: that the shell is closed, and nothing besides, means that
// the session was.
func (s *Session) ofShell(op string, err error) error {
	if stopped, ok := err.(*interrupt.Error); ok && isClosed(stopped.Cause) {
		again := *stopped
		again.Cause = fmt.Errorf("session %q was %w: %s", s.name, ErrClosed, openAgain)
		return &again
	}
	if isClosed(err) {
		return s.fail(op, ErrClosed)
	}
	return err
}

// isClosed reports whether an error says that something is closed, and joins nothing to that.
func isClosed(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if err == ErrClosed {
			return true
		}
	}
	return false
}

// BackgroundError says that a command was not stopped, but runs on as a job. The Result
// beside it has the output until then, the exit code -1, and a Restart: the session goes
// on in another bash. Unwrap gives shell.ErrTimeout, shell.ErrIdle or shell.ErrHandedOver.
type BackgroundError struct {
	Cause error
	Job   jobs.Job
}

func (e *BackgroundError) Error() string {
	return fmt.Sprintf("session: the command runs on as job %s (%v)", e.Job.ID, e.Cause)
}

func (e *BackgroundError) Unwrap() error { return e.Cause }
