package terminal

import (
	"errors"

	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/interrupt"
)

// What is wrong with a call, for errors.Is. They come in an [*Error].
var (
	// ErrNotFound means that there is no terminal of that name: it never was, or was
	// forgotten.
	ErrNotFound = errors.New("there is no such terminal")

	// ErrEnded means that the program has ended.
	ErrEnded = errors.New("the program has ended")

	// ErrRunning means that the program, or what it has started, still runs.
	ErrRunning = errors.New("the program still runs")

	// ErrElsewhere means that another program has the terminal: what is written down of
	// it can be read, but it can be reached only through that one.
	ErrElsewhere = errors.New("another program has the terminal")

	// ErrNothingToRun means that a Spec names no program.
	ErrNothingToRun = errors.New("there is nothing to run")

	// ErrNoProgram means that the program is not there, or cannot be executed.
	ErrNoProgram = errors.New("there is no such program")

	// ErrSize means that no terminal has such a size.
	ErrSize = errors.New("no size for a terminal")

	// ErrTooMany means that as many terminals run as may run.
	ErrTooMany = errors.New("too many terminals run")

	// ErrNotRead means that the program did not take what was written to it.
	ErrNotRead = errors.New("the program does not read its input")

	// ErrLineTooLong means that the kernel would drop the end of a line: a terminal that
	// edits lines itself, as it does until a program switches that off, takes at most
	// 4095 bytes of one (termios(3), canonical mode).
	ErrLineTooLong = errors.New("the line is too long for a terminal in line mode")

	// ErrClosed means that the registry, or the viewer, is closed, or was closed
	// meanwhile.
	ErrClosed = interrupt.ErrClosed

	// ErrInterrupted means that a wait was interrupted: see Options.Interrupts.
	ErrInterrupted = interrupt.ErrInterrupted
)

// Error says what could not be done, with which terminal, and what to do about it.
type Error struct {
	Op     string // start, write, ...
	ID     string // of the terminal; empty if it is not about one
	Err    error
	Remedy string // empty where Err says so
}

func (e *Error) Error() string { return errtext.Of("terminal", e.Op, e.ID, e.Err, e.Remedy) }

func (e *Error) Unwrap() error { return e.Err }
