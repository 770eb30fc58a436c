package interrupt

import (
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
)

// Ladder says how a command is stopped: a signal, a time to obey it, the next
// signal. The zero value is [DefaultLadder]. A last step that is no SIGKILL is
// followed by one.
type Ladder []Step

// Step is one rung.
type Step struct {
	Signal syscall.Signal
	Grace  time.Duration
}

// DefaultLadder gives a program half a second for SIGINT and for SIGTERM.
var DefaultLadder = Ladder{
	{syscall.SIGINT, 500 * time.Millisecond},
	{syscall.SIGTERM, 500 * time.Millisecond},
	{syscall.SIGKILL, time.Second},
}

// steps returns the ladder to climb, which always ends with SIGKILL.
func (l Ladder) steps() Ladder {
	if len(l) == 0 {
		return DefaultLadder
	}
	if l[len(l)-1].Signal == syscall.SIGKILL {
		return l
	}
	return append(l[:len(l):len(l)], DefaultLadder[len(DefaultLadder)-1])
}

// Grace is the longest time that the ladder takes.
func (l Ladder) Grace() time.Duration {
	var sum time.Duration
	for _, step := range l.steps() {
		sum += step.Grace
	}
	return sum
}

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
}

// String says it in one line.
func (o Outcome) String() string {
	var parts []string
	if o.ShellSurvived {
		parts = append(parts, "the shell kept its state")
	} else {
		parts = append(parts, "the shell had to be replaced")
	}
	count := func(list []command.Process, what string) {
		if len(list) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s %s", len(list), plural(len(list), "process", "processes"), what))
		}
	}
	count(o.Signalled, "signalled")
	count(o.Killed, "needed SIGKILL")
	count(o.Left, "still alive")
	return strings.Join(parts, ", ")
}

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
