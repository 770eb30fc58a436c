package transport

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// StartError says that a process could not be started, or ended before it was
// ready.
type StartError struct {
	Argv   []string
	Code   int            // its exit code; -1 where there is none
	Signal syscall.Signal // 0 if none ended it
	Said   string         // what it said
	Err    error
	Remedy string // what to do about it; empty where Err says so
}

func (e *StartError) Error() string {
	text := fmt.Sprintf("starting %s: %v", strings.Join(e.Argv, " "), e.Err)
	if e.Signal != 0 {
		text += fmt.Sprintf(" (killed by %s)", SignalName(e.Signal))
	} else if e.Code > 0 {
		text += fmt.Sprintf(" (exit status %d)", e.Code)
	}
	if e.Said != "" {
		text += ": it said: " + e.Said
	}
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

func (e *StartError) Unwrap() error { return e.Err }

// DirError says that a directory to start in is not there.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string {
	return fmt.Sprintf("cannot start in directory %q: %v; make it, or choose another one", e.Dir, e.Err)
}
func (e *DirError) Unwrap() error { return e.Err }

// NoBashError says that there is no bash, or none that can be executed.
type NoBashError struct{ Err error }

func (e *NoBashError) Error() string {
	switch {
	case errors.Is(e.Err, fs.ErrPermission):
		return "bash cannot be executed: " + e.Err.Error() + "; make it executable (chmod +x), or set Options.Bash to the path of another one"
	case errors.Is(e.Err, syscall.EISDIR):
		return "no bash: " + e.Err.Error() + "; set Options.Bash to the path of a bash"
	}
	return "no bash: " + e.Err.Error() + "; install it (apt-get install bash), or set Options.Bash to its path"
}

func (e *NoBashError) Unwrap() error { return e.Err }

// SignalName is the number and the name of a signal, for people.
func SignalName(sig syscall.Signal) string { return fmt.Sprintf("signal %d (%s)", int(sig), sig) }

var errNotDir = errors.New("not a directory")

// CheckDir returns a [*DirError] if dir is not a directory to start in, on this
// machine.
func CheckDir(dir string) error { return checkDir(dir, os.Stat) }

// AbsDir makes a directory absolute. Empty means the program's, which may be gone: the error is a [*DirError] then. Whether
// another one is there is for [CheckDir].
func AbsDir(dir string) (string, error) {
	full, err := filepath.Abs(dir)
	if err != nil {
		return "", &DirError{Dir: cmp.Or(dir, "."), Err: err}
	}
	return full, nil
}

// CheckDirOf is CheckDir for what the process of the Conn sees. It is nil where there is
// no telling: the process finds out.
func CheckDirOf(c Conn, dir string) error {
	v, ok := c.(Viewer)
	if !ok {
		return CheckDir(dir)
	}
	if err := checkDir(dir, v.Stat); !errors.Is(err, ErrUnseen) {
		return err
	}
	return nil
}

func checkDir(dir string, stat func(string) (fs.FileInfo, error)) error {
	st, err := stat(dir)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err // The error names the path already.
		}
		return &DirError{Dir: dir, Err: err}
	}
	if !st.IsDir() {
		return &DirError{Dir: dir, Err: errNotDir}
	}
	return nil
}
