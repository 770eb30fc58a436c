package files

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/limpet-sh/limpet/internal/errtext"
)

// DiskError reports a runtime directory that cannot be used, or that could not
// while a command ran: something of the command's Result is then missing.
type DiskError struct {
	Dir string
	Err error
}

func (e *DiskError) Error() string {
	remedy := "set RuntimeDir, or XDG_RUNTIME_DIR, to a directory that can be written"
	switch {
	case noRoom(e.Err):
		remedy = "make room there, or set RuntimeDir to a directory with more"
	case errors.Is(e.Err, syscall.EMFILE):
		remedy = errtext.Remedy(e.Err)
	case isOwnerError(e.Err):
		remedy = "it takes root with CAP_CHOWN to run a shell as another user"
	case errors.Is(e.Err, ErrDeleted):
		remedy = "set RuntimeDir, or XDG_RUNTIME_DIR, to a directory that nobody tidies up"
	}
	return fmt.Sprintf("ipc: runtime directory %q: %v; %s", e.Dir, e.Err, remedy)
}

func (e *DiskError) Unwrap() error { return e.Err }

// ErrDeleted is in errors about a session's directory, or files of it, that somebody
// deleted.
var ErrDeleted = errors.New("it was deleted")
