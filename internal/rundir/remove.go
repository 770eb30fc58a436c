package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Remove removes a directory and all that is in it, as [os.RemoveAll] does. It does
// so whatever the modes are in there, and with a handful of descriptors however deep
// it is: a command can leave what it likes. What is not there is no error.
//
// Only two levels are ever looked at. What is below the second is lifted to the
// first.
func Remove(path string) error {
	st, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return os.Remove(path)
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()                             // Nothing is written by it.
	_ = parent.Chmod(filepath.Base(path), 0o700)     // If that is needed and fails, the next fails too.
	top, err := parent.OpenRoot(filepath.Base(path)) // A symlink by now leads nowhere else.
	if err != nil {
		return err
	}
	defer top.Close() // As above.
	lifted := 0
	lift := func() string {
		for {
			lifted++
			name := strconv.Itoa(lifted)
			if _, err := top.Lstat(name); errors.Is(err, fs.ErrNotExist) {
				return name
			}
		}
	}
	for range deepest {
		entries, err := list(top)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			return os.Remove(path)
		}
		for _, entry := range entries {
			if entry.IsDir() {
				err = empty(top, entry.Name(), lift)
			} else {
				err = top.Remove(entry.Name())
			}
			if err != nil {
				return err
			}
		}
	}
	return fmt.Errorf("rundir: %q does not become empty: somebody goes on making files there", path)
}

// deepest bounds the levels of a directory, against one that grows while it is removed.
const deepest = 1 << 17

// empty removes a directory in top. The directories in it become top's own, under
// the names that lift returns.
func empty(top *os.Root, name string, lift func() string) error {
	_ = top.Chmod(name, 0o700) // As above.
	sub, err := top.OpenRoot(name)
	if err != nil {
		return err
	}
	entries, err := list(sub)
	for _, entry := range entries {
		if !entry.IsDir() {
			err = errors.Join(err, sub.Remove(entry.Name()))
			continue
		}
		_ = sub.Chmod(entry.Name(), 0o700) // To move it is to write its "..".
		err = errors.Join(err, top.Rename(filepath.Join(name, entry.Name()), lift()))
	}
	_ = sub.Close() // Nothing is written by it.
	return errors.Join(err, top.Remove(name))
}

func list(dir *os.Root) ([]fs.DirEntry, error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close() // Read only.
	return f.ReadDir(-1)
}
