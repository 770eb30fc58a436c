package command

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Request is one command for a shell. Only Script is required.
type Request struct {
	// Script is the text that bash runs, as in bash -c: one line or many. It
	// may not be empty and may not hold a NUL byte.
	Script string

	// ID is for a command that may be asked for again, as after a crash: of 1 to 64 letters, digits, dashes and
	// underscores, for this command of this session alone. Another program that has the session, a keeper, runs one of an
	// ID once: asked again, by whoever, it answers with what came of it, or that this is not known any more. A
	// shell of this program ignores it.
	ID string

	// Caller names the sender, "limpet repl, process 4711 on pts/3", for people whose commands wait behind this one: session.Info.Holder has it
	// while no older command of the session is left. Empty names nobody. A shell ignores it.
	Caller string

	// Dir is where Script starts; relative means below the shell's current
	// directory. Empty means the current directory itself. In a persistent
	// shell it holds for this command alone: afterwards the shell is back
	// where it was, unless Script itself went somewhere else.
	Dir string

	// Env holds "NAME=value" entries that are exported to Script on top of the
	// shell's environment, for this command alone. A later entry for the same
	// name wins. NAME must be a shell identifier. If bash cannot set one of them,
	// as it is readonly in the shell, nothing runs and the error is an [*EnvError].
	Env []string

	// Unset names variables that Script does not have, though the shell has them.
	// They are back after it. A name that is in Env too is set by that. A
	// persistent shell runs such a request in a subshell: what it changes (the
	// directory, variables, functions, options) is gone after it. A variable that
	// is readonly cannot be unset: see Env.
	Unset []string

	// UpdateEnv has what a persistent shell takes over from who asks: "NAME=value" entries that are exported
	// in the shell before Script, and stay, and names of variables that are unset there; each name
	// once. A variable is left alone, and that is no error, if it has not the value any more
	// that such an entry gave it last, or else the shell's first environment: then a script has set it, or made it
	// readonly. Env and Unset hold on top of it. A oneshot.Runner ignores it.
	UpdateEnv []string

	// Stdin is what Script reads. Nil means /dev/null, or what the shell was made with
	// (shell.Options.Stdin). A persistent shell runs
	// a request with Stdin in a fresh bash, in its own current directory and
	// with its own exported environment, unless shell.Options.StdinInShell says otherwise.
	//
	// An *os.File is handed to bash as it is. Any other Reader is copied by a
	// goroutine that ends at the end of the Reader or of the command; a Read
	// that blocks beyond the command keeps that goroutine until it returns. An
	// error of the Reader comes beside the Result, once the command has ended,
	// unless there is a worse one; the command has got the end of its input then.
	Stdin io.Reader

	// Stdout and Stderr receive the output while the command runs, in chunks
	// that do not split a UTF-8 sequence. Nil means that it is only collected
	// in the Result. Writes come from one goroutine per request; a Writer that
	// falls far behind the command loses data and is told how much.
	//
	// When a Write fails, or takes less than it was given, nothing more is written to that Writer. The command goes
	// on, the Result has all of its output, and the error of the Write comes
	// beside it, once the command has ended, unless there is a worse one. A Write
	// that does not return holds the command's return up; if the command is
	// stopped or its caller's context ends, for a second.
	Stdout, Stderr io.Writer

	// Timeout bounds the whole command, IdleTimeout the time without output
	// on either stream. Zero means the shell's default; negative means none.
	Timeout, IdleTimeout time.Duration

	// Ladder is how the command is stopped, if it comes to that. Empty means the shell's
	// own. A program that cleans up at a SIGTERM gets to it by a Ladder that begins with
	// that: the shell's, as a rule, begins with SIGINT, as Ctrl-C does.
	Ladder Ladder

	// HandOver has a persistent shell not stop a command that passes its Timeout or
	// IdleTimeout, but give it away while it runs: see shell.HandedOverError. It
	// cannot go with Stdin, nor to oneshot.Runner.
	HandOver bool

	// HandOverAfter has a persistent shell give the command away, as HandOver does, when it
	// has run for so long. Its Timeout is then to be kept by who takes it: see
	// shell.Running.Left. Zero means that it is not; it cannot go with Stdin either.
	HandOverAfter time.Duration

	// TurnTimeout bounds how long the request waits for its turn, in a shell that runs one
	// command at a time. The error is then shell.ErrBusy, and nothing ran. Zero means that it
	// waits as long as its context allows.
	TurnTimeout time.Duration

	// MergeStderr sends stderr to stdout, in the order in which the command
	// wrote them. Result.Stderr is then empty.
	MergeStderr bool
}

// Errors that say why a Request cannot be run. Nothing ran. ErrNUL is also, for
// errors.Is, that of a directory with a NUL byte.
var (
	ErrEmptyScript = errors.New("command: script is empty")
	ErrNUL         = errors.New("command: script holds a NUL byte, which bash cannot carry; pass binary data through Stdin or a file")
	ErrID          = errors.New("command: an id has 1 to 64 letters, digits, dashes and underscores")
)

// ValidID reports whether a text can be the ID of a request.
func ValidID(id string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
	return id != "" && len(id) <= 64 && strings.Trim(id, letters) == ""
}

// ErrHandOver is for a request whose command cannot be handed over.
var ErrHandOver = errors.New("command: a command that is to be handed over runs in a persistent shell, and without Stdin")

// ErrReadonly means that a variable is readonly in bash: a request can neither set nor
// unset it.
var ErrReadonly = errors.New("is readonly in this shell: leave it out, or set another one")

// EnvError reports an entry of [Request.Env] or [Request.Unset] that bash could not take.
// Nothing ran. Values do not appear in it: they may be secret.
type EnvError struct {
	Name string // of the variable, or the whole entry where it has no "="
	Err  error  // what is wrong with it: ErrReadonly, for one
}

func (e *EnvError) Error() string {
	return fmt.Sprintf("command: environment entry %q: %v", e.Name, e.Err)
}

func (e *EnvError) Unwrap() error { return e.Err }

// What is wrong with an entry, besides ErrReadonly.
var (
	ErrNoAssignment = errors.New("wants NAME=value")
	ErrNoIdentifier = errors.New("is not a shell identifier (letters, digits and _, no digit first)")
	ErrNULInValue   = errors.New("holds a NUL byte")
)

// dirNULError is the ErrNUL of a directory.
type dirNULError struct{ dir string }

func (e *dirNULError) Error() string {
	return fmt.Sprintf("command: directory %q holds a NUL byte, which no path can", e.dir)
}

func (e *dirNULError) Is(target error) bool { return target == ErrNUL }

// Validate reports what makes the request impossible to run: [ErrEmptyScript],
// [ErrNUL], [ErrID], a [*LadderError] or an [*EnvError]. It does not look at the file system.
func (r Request) Validate() error {
	if strings.TrimSpace(r.Script) == "" {
		return ErrEmptyScript
	}
	if strings.IndexByte(r.Script, 0) >= 0 {
		return ErrNUL
	}
	if r.ID != "" && !ValidID(r.ID) {
		return ErrID
	}
	if strings.IndexByte(r.Dir, 0) >= 0 {
		return &dirNULError{r.Dir}
	}
	if (r.HandOver || r.HandOverAfter > 0) && r.Stdin != nil {
		return ErrHandOver
	}
	for _, name := range r.Unset {
		switch {
		case !isIdentifier(name):
			return &EnvError{name, ErrNoIdentifier}
		case slices.Contains(readonly, name):
			return &EnvError{name, ErrReadonly}
		}
	}
	for _, entry := range r.UpdateEnv {
		switch name, value, _ := strings.Cut(entry, "="); {
		case !isIdentifier(name):
			return &EnvError{name, ErrNoIdentifier}
		case strings.IndexByte(value, 0) >= 0:
			return &EnvError{name, ErrNULInValue}
		}
	}
	if err := r.Ladder.Validate(); err != nil {
		return err
	}
	return ValidateEnv(r.Env)
}

// readonly are the variables that are readonly in every bash. The environment of a bash
// that starts can set those behind the first two.
var readonly = []string{"BASH_VERSINFO", "PPID", "BASHOPTS", "EUID", "SHELLOPTS", "UID"}

// ValidateEnv reports the first entry of env that is not NAME=value with a shell
// identifier as its name, or that no bash can set, as an [*EnvError].
func ValidateEnv(env []string) error {
	for _, entry := range env {
		name, value, found := strings.Cut(entry, "=")
		switch {
		case !found:
			return &EnvError{entry, ErrNoAssignment}
		case !isIdentifier(name):
			return &EnvError{name, ErrNoIdentifier}
		case strings.IndexByte(value, 0) >= 0:
			return &EnvError{name, ErrNULInValue}
		case slices.Contains(readonly[:2], name):
			return &EnvError{name, ErrReadonly}
		}
	}
	return nil
}

func isIdentifier(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
