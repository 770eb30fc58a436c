package interrupt

import (
	"fmt"
	"strings"

	"github.com/limpet-sh/limpet/command"
)

// Ladder and Step are declared in package command, so that a Request can have one.
type (
	// Ladder says how a command is stopped.
	Ladder = command.Ladder
	// Step is one rung of it.
	Step = command.Step
)

// DefaultLadder gives a program half a second for SIGINT and for SIGTERM.
var DefaultLadder = Ladder(nil).Steps()

// Outcome says what became of the processes of a command that was stopped.
type Outcome struct {
	// Signalled are the processes that were sent a signal, in the order of
	// their first one; Killed those of them that needed SIGKILL.
	Signalled, Killed []command.Process

	// Left are those that live in spite of it all: they could not be signalled
	// (another user's), or did not die (a hung disk).
	Left []command.Process

	// ShellSurvived reports that bash came back to its prompt, with its state
	// and its jobs.
	ShellSurvived bool

	// OwnBash reports that the command ran in a bash of its own, as one with Stdin does: the stop touched
	// no shell that stays. ShellSurvived is false then.
	OwnBash bool
}

// String says it in one line.
func (o Outcome) String() string {
	var parts []string
	switch {
	case o.ShellSurvived:
		parts = append(parts, "the shell kept its state")
	case o.OwnBash:
		parts = append(parts, "it ran in a bash of its own")
	default:
		parts = append(parts, "the shell had to be replaced")
	}
	return strings.Join(append(parts, o.processes()...), ", ")
}

// processes says what became of them.
func (o Outcome) processes() (parts []string) {
	count := func(list []command.Process, what string) {
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s %s", len(list), plural(len(list), "process", "processes"), what))
		}
	}
	count(o.Signalled, "signalled")
	count(o.Killed, "needed SIGKILL")
	count(o.Left, "still alive")
	return parts
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
