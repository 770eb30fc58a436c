package command

import (
	"fmt"
	"syscall"
	"time"
)

// Ladder says how a command is stopped: a signal, a time to obey it, the next
// signal. The zero value gives a program half a second for SIGINT and for SIGTERM. A
// last step that is no SIGKILL is followed by one.
type Ladder []Step

// Step is one rung.
type Step struct {
	Signal syscall.Signal
	Grace  time.Duration
}

// The steps of the zero value. A ladder that does not end with SIGKILL ends with the
// last of them.
const (
	grace     = 500 * time.Millisecond
	killGrace = time.Second
)

// Steps returns what the ladder comes to: it always ends with SIGKILL.
func (l Ladder) Steps() Ladder {
	kill := Step{syscall.SIGKILL, killGrace}
	if len(l) == 0 {
		return Ladder{{syscall.SIGINT, grace}, {syscall.SIGTERM, grace}, kill}
	}
	if l[len(l)-1].Signal == syscall.SIGKILL {
		return l
	}
	return append(l[:len(l):len(l)], kill)
}

// Grace is the longest time that the ladder takes.
func (l Ladder) Grace() time.Duration {
	var sum time.Duration
	for _, step := range l.Steps() {
		sum += step.Grace
	}
	return sum
}

// LadderError reports a step of a [Ladder] that cannot be taken. The first is step 0.
type LadderError struct {
	Step   int
	Reason string
}

func (e *LadderError) Error() string {
	return fmt.Sprintf("command: step %d of the ladder: %s", e.Step, e.Reason)
}

// lastSignal is the last of the real-time signals.
const lastSignal = 64

// Validate reports the first step that cannot be taken, as a [*LadderError].
func (l Ladder) Validate() error {
	for i, step := range l {
		switch {
		case step.Signal < 1 || step.Signal > lastSignal:
			return &LadderError{i, fmt.Sprintf("%d is no signal", int(step.Signal))}
		case step.Signal == syscall.SIGSTOP:
			return &LadderError{i, "after a SIGSTOP no program can obey"}
		case step.Grace < 0:
			return &LadderError{i, fmt.Sprintf("the grace is negative: %v", step.Grace)}
		}
	}
	return nil
}
