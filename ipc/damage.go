package ipc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/files"
)

// damage is what was done to a dir from outside: by a command, by somebody who
// tidies up. The zero value is none.
type damage int

// The kinds of damage, from the lightest on.
const (
	none     damage = iota
	missing         // something was deleted, or the directory moved or closed: renew mends that
	replaced        // something else is in its place; what bash does by that name is not limpet's any more
)

// ErrReplaced is in errors about files of the session in whose place there is
// something else. Only another [Exchange] helps.
var ErrReplaced = errors.New("a command put something else in the place of the session's files")

// ErrDeleted is in errors about a session's directory, or files of it, that somebody
// deleted. Renew makes them anew.
var ErrDeleted = files.ErrDeleted

// settled is how old a change of the directory must be to be told from the next
// one: the kernel cuts times to its tick, which is 10 ms at most.
const settled = 20 * time.Millisecond

// damage looks for damage by name. It costs one system call as long as nothing
// was made, deleted or renamed in the directory. What is written into the files
// themselves is not seen.
func (d *dir) damage() damage {
	changed, linked := changeTime(d.self)
	if linked && !changed.IsZero() && changed.Equal(d.intact) {
		return none
	}
	worst := d.look()
	if worst == none && time.Since(changed) > settled {
		d.intact = changed
	}
	return worst
}

func (d *dir) look() damage {
	if at, err := os.Lstat(d.path); err != nil || !files.Same(d.self, at) || at.Mode().Perm() != files.DirMode {
		return missing // Moved away, say. A symlink in its place is not of a sandbox's making.
	}
	worst := d.present(outName, fs.FileMode.IsDir)
	for _, name := range []string{stateName, exitName, beforeName, returnName} {
		worst = max(worst, d.present(name, fs.FileMode.IsRegular))
	}
	for _, p := range []*pinned{&d.eval, &d.inner} {
		worst = max(worst, same(d.root, p.name, p.f))
	}
	if !d.unwatched && same(d.root, d.record.name, d.record.f) != none {
		return max(worst, missing) // Bash has it open. Only its events are lost.
	}
	return worst
}

// present looks for what need not be what limpet made: it has no content that
// counts.
func (d *dir) present(name string, right func(fs.FileMode) bool) damage {
	switch st, err := d.root.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return missing
	case err != nil || !right(st.Mode()):
		return replaced
	}
	return none
}

// same looks for the very file that limpet has open.
func same(root *os.Root, name string, f *os.File) damage {
	switch named, err := files.Named(root, name, f); {
	case errors.Is(err, fs.ErrNotExist):
		return missing
	case !named:
		return replaced
	}
	return none
}

// broken is the error for a directory in which something cannot be made. Unless it
// is the disk's or the program's limits, somebody has been there.
func (d *dir) broken(err error) error {
	for _, limit := range []syscall.Errno{
		syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EIO, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	} {
		if errors.Is(err, limit) {
			return &DiskError{Dir: d.path, Err: err}
		}
	}
	return &DiskError{Dir: d.path, Err: fmt.Errorf("%w: %w", ErrReplaced, err)}
}
