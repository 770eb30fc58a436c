package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ErrMayHaveRun means that a command was asked for, and that the program which had it has died, or
// forgotten it: nobody knows what became of it, and it is not run again.
var ErrMayHaveRun = errors.New("what became of the command is not known: it may have run, and is not run again")

// ErrMayHaveStarted means that a job or a terminal was asked for, and that the answer is lost: whether it has started is not known, and it
// is not asked for again. If it has, the session's list has it.
var ErrMayHaveStarted = errors.New("it may have started, and is not started again")

// EndedError means that a command of that id has run and ended, and that no more is known of it. It is not
// run again.
type EndedError struct{ Code int } // 0 to 255, as in a command.Result

func (e *EndedError) Error() string {
	return fmt.Sprintf("the command has run before, and ended with exit code %d; what it printed is not kept any more, and it is not run again", e.Code)
}

// Journal remembers the commands that may be asked for again for longer than a Handler does, and than the
// program lives. Its methods are called one at a time.
type Journal interface {
	// Ask notes that a command of that id is about to run. It must not if there is an error: it was asked for
	// before (ErrMayHaveRun, an [*EndedError], or ErrOtherCommand if what is another), or cannot be noted.
	Ask(id string, what []byte) error

	// End notes how it has ended: with an exit code, or that nothing ran, so that it can be asked for again.
	End(id string, code int, ran bool)
}

var errNoJournal = errors.New("commands cannot have an id of their own here: nothing remembers them")

// what is what makes a command the one it is: the same for two requests that ask for the same.
func (r request) what() []byte {
	b, err := json.Marshal([]any{r.Script, r.Dir, r.Env, r.Unset, r.Stdin})
	if err != nil {
		panic(err) // It is made of texts.
	}
	return b
}
