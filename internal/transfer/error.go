package transfer

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/limpet-sh/limpet/internal/errtext"
)

// Error says what could not be done, with which file. A path of the other machine begins with a colon, as on the command line.
type Error struct {
	Op     string // "reading", "writing", "listing"
	Path   string
	Err    error
	Remedy string
}

func (e *Error) Error() string { return errtext.Of("transfer", e.Op, e.Path, e.Err, e.Remedy) }
func (e *Error) Unwrap() error { return e.Err }

// FarError is what the other machine says is wrong there.
type FarError struct{ Err error }

func (e *FarError) Error() string { return e.Err.Error() }
func (e *FarError) Unwrap() error { return e.Err }

// said is the text of an error, for who knows what it is about.
func said(err error) string { return strings.TrimPrefix(err.Error(), "transfer: ") }

var (
	// ErrPartly means that something was not copied. What, and why, was told.
	ErrPartly = errors.New("some of it was not copied")

	// ErrChanged means that a file changed while it was read: a copy would be of no file that there ever was.
	ErrChanged = errors.New("it changed while it was copied")

	errSpoiled = errors.New("what came is not what was sent: its SHA-256 is another one")
	errLonger  = errors.New("there is more of it than was announced")
	errUnsized = errors.New("it has no size before it is read, as files of the kernel (/proc, /sys), which cannot be copied: print it instead")
	errShorter = errors.New("there is less of it than was announced")
	errTaken   = errors.New("another copy writes it now")
	errBehind  = errors.New("a part of it is gone that was written") // It is sent again.
)

// noRoom reports whether a disk, or a quota, is full.
func noRoom(err error) bool { return errtext.NoRoom(err) }

// bare is what a system call said, without the path that an *Error has.
func bare(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// size is a number of bytes, for people.
func size(n int64) string {
	const kibi = 1024
	for _, unit := range []string{"bytes", "KiB", "MiB", "GiB"} {
		if n < 10*kibi {
			return fmt.Sprintf("%d %s", n, unit)
		}
		n /= kibi
	}
	return fmt.Sprintf("%d TiB", n)
}
