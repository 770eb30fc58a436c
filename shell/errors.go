package shell

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/transport"
)

// Why a command did not end by itself. Test with errors.Is.
var (
	// ErrTimeout means that the command ran longer than its Timeout.
	ErrTimeout = interrupt.ErrTimeout

	// ErrIdle means that the command wrote nothing for its IdleTimeout.
	ErrIdle = interrupt.ErrIdle

	// ErrInterrupted means that Interrupt was called, or that a Source stopped.
	ErrInterrupted = interrupt.ErrInterrupted

	// ErrClosed means that the shell is closed, or was closed meanwhile.
	ErrClosed = interrupt.ErrClosed
)

// ErrBusy means that another command ran for longer than the TurnTimeout of a request. Nothing ran.
var ErrBusy = errors.New("the shell runs another command")

// errClosed is an ErrClosed that says what to do.
var errClosed = fmt.Errorf("the shell is %w: start another one", ErrClosed)

var errNotStarted = errors.New("shell: the zero PersistentShell has no bash: use Start")

// InterruptError says that the command was stopped, why, and what became of
// its processes.
type InterruptError = interrupt.Error

// StartError says that no bash could be started. It wraps a
// [transport.NoBashError] where there is none.
type StartError = transport.StartError

// DirError says that a directory to start in is not there.
type DirError = transport.DirError

// DeadError says that bash ended without saying how the command did.
type DeadError struct {
	Argv   []string
	Code   int            // bash's exit code; -1 if a signal ended it
	Signal syscall.Signal // 0 if none
	Said   string         // the last that bash itself said
	Reason string         // why limpet gave it up, if it did; else empty
}

func (e *DeadError) Error() string {
	how := fmt.Sprintf("exited with %d", e.Code)
	if e.Signal != 0 {
		how = "was killed by " + transport.SignalName(e.Signal)
	}
	if e.Reason != "" {
		how = e.Reason
	}
	text := "bash " + how + " and did not say how the command ended"
	if e.Said != "" {
		text += ": " + e.Said
	}
	return text
}

// RefusedError says that Options.Before or Options.Admit refused the command. Nothing ran.
type RefusedError struct{ Err error }

func (e *RefusedError) Error() string { return "refused: " + e.Err.Error() }
func (e *RefusedError) Unwrap() error { return e.Err }

// said tidies what bash said for an error: one line, the useful end of it.
func said(stderr []byte) string {
	const longest = 500
	var lines []string
	for line := range strings.Lines(strings.ToValidUTF8(string(stderr), "?")) {
		line = strings.TrimSpace(line)
		// Every interactive bash without a terminal says these two.
		if line == "" || strings.Contains(line, "cannot set terminal process group") ||
			strings.Contains(line, "no job control in this shell") {
			continue
		}
		lines = append(lines, line)
	}
	text := strings.Join(lines, "; ")
	if len(text) > longest {
		text = "..." + strings.ToValidUTF8(text[len(text)-longest:], "")
	}
	return text
}
