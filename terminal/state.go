package terminal

import (
	"fmt"
	"slices"
	"syscall"

	"github.com/limpet-sh/limpet/transport"
)

// State is where a terminal is in its life. It goes forward only.
type State string

// The states, and how one follows another.
//
//	Starting --> Running --> Succeeded   exit code 0
//	   |            +------> Failed      another code, or a signal
//	   |            +------> Cancelled   it was closed
//	   |            +------> Lost        the program that had the terminal is gone
//	   +---------------> Failed, Cancelled, Lost: it never ran
const (
	Starting  State = "starting"
	Running   State = "running"
	Succeeded State = "succeeded"
	Failed    State = "failed"
	Cancelled State = "cancelled"
	Lost      State = "lost"
)

// follows is which states may follow one.
var follows = map[State][]State{
	Starting: {Running, Failed, Cancelled, Lost},
	Running:  {Succeeded, Failed, Cancelled, Lost},
}

// Ended reports whether nothing follows the state.
func (s State) Ended() bool { return s != Starting && s != Running }

// To returns nil if next may follow s, and else a [*TransitionError].
func (s State) To(next State) error {
	if slices.Contains(follows[s], next) {
		return nil
	}
	return &TransitionError{From: s, To: next}
}

// TransitionError says that a terminal cannot go from one state to the other.
type TransitionError struct{ From, To State }

func (e *TransitionError) Error() string {
	if e.From.Ended() {
		return fmt.Sprintf("a terminal that is %s stays so, and cannot be %s", e.From, e.To)
	}
	return fmt.Sprintf("a terminal that is %s cannot be %s next", e.From, e.To)
}

// Exit says how a program ended.
type Exit struct {
	// Code is 0 to 255; -1 if a signal ended the program, or it is not known.
	Code int `json:"code"`

	// Signal ended the program; 0 if none did.
	Signal syscall.Signal `json:"signal,omitempty"`
}

// String says it in words, as in "exit 1" or "ended by signal 9 (killed)".
func (e Exit) String() string {
	if e.Signal != 0 {
		return "ended by " + transport.SignalName(e.Signal)
	}
	if e.Code < 0 {
		return "nobody saw how it ended"
	}
	return fmt.Sprintf("exit %d", e.Code)
}

// outcome is the state of a program that ended by itself.
func (e Exit) outcome() State {
	if e.Code == 0 && e.Signal == 0 {
		return Succeeded
	}
	return Failed
}
