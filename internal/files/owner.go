package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/limpet-sh/limpet/internal/private"
)

// Owner is the user and the group to whom a session's files belong, if its bash
// runs as another user than this program. A nil *Owner is the user of this program.
type Owner struct {
	UID, GID uint32
}

// GiveFile gives an open file or directory to the owner. It is not done by name, as
// Give does it: who can write the directory could put something else there.
func (o *Owner) GiveFile(f *os.File) error {
	if o == nil {
		return nil
	}
	if err := f.Chown(int(o.UID), int(o.GID)); err != nil {
		return &ownerError{*o, err}
	}
	return nil
}

// Give gives files and directories to the owner, in this order, by name: nobody else
// may yet be able to put something in their place.
func (o *Owner) Give(paths ...string) error {
	if o == nil {
		return nil
	}
	for _, path := range paths {
		if err := os.Lchown(path, int(o.UID), int(o.GID)); err != nil {
			return &ownerError{*o, err}
		}
	}
	return nil
}

// Create makes a file that was not there, and gives it to the owner.
func (o *Owner) Create(root *os.Root, name string) (*os.File, error) {
	f, err := private.OpenIn(root, name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, err
	}
	if err := o.GiveFile(f); err != nil {
		_ = f.Close() // Nothing was written.
		return nil, err
	}
	return f, nil
}

// Mkdir makes a directory, unless it is there, and gives it to the owner.
func (o *Owner) Mkdir(root *os.Root, name string) error {
	err := private.MkdirIn(root, name)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil || o == nil {
		return err
	}
	// By now the owner's processes may have put something in its place: a directory
	// of their own, or what is none.
	dir, err := root.OpenFile(name, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(o.GiveFile(dir), dir.Close())
}

// Made refuses a file that is not the owner's own: another user's, to which somebody
// has made a link, would be written to.
func (o *Owner) Made(f *os.File) error {
	if o == nil {
		return nil
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if st := info.Sys().(*syscall.Stat_t); st.Uid != o.UID || st.Nlink != 1 {
		return fmt.Errorf("ipc: %q is not the file of user %d alone: %w", f.Name(), o.UID, fs.ErrInvalid)
	}
	return nil
}

// ownerError says that a file could not be given away (chown(2)).
type ownerError struct {
	owner Owner
	err   error
}

func (e *ownerError) Error() string {
	return fmt.Sprintf("giving it to user %d, group %d: %v", e.owner.UID, e.owner.GID, e.err)
}

func (e *ownerError) Unwrap() error { return e.err }

func isOwnerError(err error) bool {
	_, ok := errors.AsType[*ownerError](err)
	return ok
}
