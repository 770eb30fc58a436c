package sandbox

import "errors"

// Why a sandbox is not to be had. Test with errors.Is.
var (
	ErrNoPolicy         = errors.New("no policy")
	ErrNoWorkspace      = errors.New("no workspace")
	ErrBadWorkspace     = errors.New("bad workspace")
	ErrNoBackend        = errors.New("no bubblewrap")
	ErrUntrustedBackend = errors.New("untrusted bubblewrap")
	ErrOldBackend       = errors.New("bubblewrap is too old")
	ErrUserns           = errors.New("no user namespaces")
	ErrNetns            = errors.New("no network namespace")
	ErrProxy            = errors.New("no proxy to the allowed hosts")
	ErrProc             = errors.New("no /proc")
	ErrMount            = errors.New("a mount failed")
	ErrProtect          = errors.New("a path cannot be protected")
	ErrSeccomp          = errors.New("no seccomp filter")
	ErrExec             = errors.New("the program is not in the sandbox")
	ErrStartTimeout     = errors.New("the sandbox did not start in time")
	ErrDrift            = errors.New("a protection was lost")
	ErrViolation        = errors.New("a protected path was made")
	ErrLimits           = errors.New("a limit cannot be set")
	ErrRunAs            = errors.New("cannot run as that user")
	ErrWiden            = errors.New("the policy would be wider")
	ErrUnsupported      = errors.New("no sandbox on this system")
)

// Error says why a sandbox is not to be had, or no longer. The command did not
// run. It wraps one of the errors above, which is its Code.
type Error struct {
	Code   error
	Detail string // what exactly
	Hint   string // the remedy; may be empty
	Said   string // what bwrap said; may be empty

	Violations []Violation // of ErrViolation
}

func (e *Error) Error() string {
	text := "sandbox: " + e.Detail
	if e.Hint != "" {
		text += "; " + e.Hint
	}
	if e.Said != "" {
		text += " (bwrap said: " + e.Said + ")"
	}
	return text
}

// Unwrap gives the Code.
func (e *Error) Unwrap() error { return e.Code }
