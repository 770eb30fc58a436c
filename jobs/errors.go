package jobs

import (
	"errors"
	"fmt"

	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/interrupt"
)

// What is wrong with a call, for errors.Is. They come in an [*Error].
var (
	// ErrNotFound means that there is no job of that name: it never was, or was
	// forgotten.
	ErrNotFound = errors.New("there is no such job")

	// ErrFinished means that the job has ended already.
	ErrFinished = errors.New("the job has already finished")

	// ErrRunning means that the job, or what it has started, still runs.
	ErrRunning = errors.New("the job still runs")

	// ErrNotPossible means that the job, or the registry, is not made for it.
	ErrNotPossible = errors.New("not possible here")

	// ErrOwned means that another program owns the registry.
	ErrOwned = errors.New("another program owns the registry")

	// ErrTooMany means that as many jobs run as may run.
	ErrTooMany = errors.New("too many jobs run")

	// ErrNotRead means that the job did not take what was written to it.
	ErrNotRead = errors.New("the job does not read its input")

	// ErrClosed means that the registry is closed, or was closed meanwhile.
	ErrClosed = interrupt.ErrClosed

	// ErrInterrupted means that a wait was interrupted: see Options.Interrupts.
	ErrInterrupted = interrupt.ErrInterrupted
)

// OwnedError says which program owns the registry. It is [ErrOwned].
type OwnedError struct {
	PID int // 0 if it is not known
}

func (e *OwnedError) Error() string {
	if e.PID == 0 {
		return ErrOwned.Error()
	}
	return fmt.Sprintf("%v: pid %d", ErrOwned, e.PID)
}

func (e *OwnedError) Unwrap() error { return ErrOwned }

// Error says what could not be done, with which job, and what to do about it.
type Error struct {
	Op     string // start, poll, ...
	ID     string // of the job; empty if it is not about one
	Err    error
	Remedy string // empty where Err says so
}

func (e *Error) Error() string { return errtext.Of("jobs", e.Op, e.ID, e.Err, e.Remedy) }

func (e *Error) Unwrap() error { return e.Err }
