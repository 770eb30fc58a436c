package interrupt

import (
	"context"
	"errors"
	"strings"

	"github.com/limpet-sh/limpet/command"
)

// Why a command was stopped. Test with errors.Is.
var (
	// ErrTimeout means that the command ran longer than its Timeout.
	ErrTimeout = errors.New("timeout")

	// ErrIdle means that the command wrote nothing for its IdleTimeout.
	ErrIdle = errors.New("idle timeout")

	// ErrInterrupted means that somebody stopped it: a Source, or Interrupt.
	ErrInterrupted = errors.New("interrupted")

	// ErrClosed means that what ran it is closed, or was closed meanwhile.
	ErrClosed = errors.New("closed")
)

// Error says that a command was stopped, why, and what became of its
// processes. It also is, for errors.Is, the error of the context that ended.
type Error struct {
	Cause   error
	Outcome Outcome

	// NothingRan says that the command was stopped before bash had it.
	NothingRan bool

	// Context is the error of the context that ended, if that is why: context.Canceled or
	// context.DeadlineExceeded. Else it is nil.
	Context error
}

// NewError returns the error for a command that was stopped because of cause.
// ctx is the one that the command ran under; if neither a limit nor somebody
// who interrupts is the cause, its end is.
func NewError(ctx context.Context, cause error, outcome Outcome) *Error {
	e := &Error{Cause: cause, Outcome: outcome}
	for _, own := range []error{ErrTimeout, ErrIdle, ErrInterrupted, ErrClosed} {
		if errors.Is(cause, own) {
			return e
		}
	}
	e.Context = ctx.Err()
	return e
}

// NewRefusal returns the error for a command that was stopped before bash had it, by a
// [Source] or by other code that interrupts.
func NewRefusal(cause error) *Error { return &Error{Cause: cause, NothingRan: true} }

func (e *Error) Error() string {
	if e.NothingRan {
		return "nothing ran: " + e.Cause.Error()
	}
	outcome := e.Outcome.String()
	if errors.Is(e.Cause, ErrClosed) { // There is no shell any more.
		outcome = strings.Join(e.Outcome.processes(), ", ")
	}
	text := "command stopped: " + e.Cause.Error()
	if outcome != "" {
		text += " (" + outcome + ")"
	}
	return text
}

func (e *Error) Unwrap() error { return e.Cause }

// Is makes a context that was cancelled with a cause of its own still a
// cancelled context.
func (e *Error) Is(target error) bool { return e.Context != nil && errors.Is(e.Context, target) }

// ExitCode is the exit code of a command that was stopped: 124 where time ran
// out, as timeout(1) has it, else 130. It is -1 if nothing ran.
func (e *Error) ExitCode() int {
	if e.NothingRan {
		return command.CodeUnknown
	}
	for _, timeout := range []error{ErrTimeout, ErrIdle, context.DeadlineExceeded} {
		if errors.Is(e, timeout) {
			return command.CodeTimeout
		}
	}
	return command.CodeInterrupted
}
