// Package private makes files and directories of limpet's own: for this user alone, and to be used by this user,
// whatever the umask is. One that takes rights from the owner, such as 777, would else leave files that limpet itself
// cannot open again. The umask stays as it is: it is that of the commands that limpet starts.
package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	dirMode  fs.FileMode = 0o700
	fileMode fs.FileMode = 0o600
)

// Mkdir makes a directory. The error wraps fs.ErrExist if there is something of that name.
func Mkdir(path string) error {
	if err := os.Mkdir(path, dirMode); err != nil {
		return err
	}
	return usableDir(path)
}

// MkdirAll makes a directory, and those above it that are missing. One that is there stays as it is.
func MkdirAll(path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return nil
	}
	if dir := filepath.Dir(path); dir != path {
		if err := MkdirAll(dir); err != nil {
			return err
		}
	}
	err := Mkdir(path)
	if errors.Is(err, fs.ErrExist) {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			return nil // Another program was quicker.
		}
	}
	return err
}

// MkdirTemp is os.MkdirTemp.
func MkdirTemp(dir, pattern string) (string, error) {
	path, err := os.MkdirTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	if err := usableDir(path); err != nil {
		return "", err
	}
	return path, nil
}

// usableDir gives the owner of a directory that was just made the rights that the umask has taken. It removes the directory if it fails.
func usableDir(path string) error {
	st, err := os.Lstat(path)
	if err == nil && st.Mode()&dirMode != dirMode { // Some file systems have one mode for all, and let nobody change it.
		err = os.Chmod(path, dirMode)
	}
	if err != nil {
		_ = os.Remove(path) // It is empty.
	}
	return err
}

// OpenFile is os.OpenFile, for flags with os.O_CREATE. A file that was there keeps its mode, which somebody may have given it.
func OpenFile(path string, flag int) (*os.File, error) {
	return open(flag, func(flag int) (*os.File, error) { return os.OpenFile(path, flag, fileMode) }, func() error { return os.Remove(path) })
}

// OpenIn is OpenFile for a file below root.
func OpenIn(root *os.Root, name string, flag int) (*os.File, error) {
	return open(flag, func(flag int) (*os.File, error) { return root.OpenFile(name, flag, fileMode) }, func() error { return root.Remove(name) })
}

// open opens a file by a function, which makes it if it is not there. Another one removes it.
func open(flag int, by func(flag int) (*os.File, error), remove func() error) (*os.File, error) {
	f, err := by(flag | os.O_EXCL)
	switch {
	case errors.Is(err, fs.ErrExist) && flag&os.O_EXCL == 0:
		return by(flag)
	case err != nil:
		return nil, err
	}
	if err := usable(f); err != nil {
		_ = remove() // It was just made.
		return nil, err
	}
	return f, nil
}

// MkdirIn is Mkdir for a directory below root.
func MkdirIn(root *os.Root, name string) error {
	if err := root.Mkdir(name, dirMode); err != nil {
		return err
	}
	st, err := root.Lstat(name)
	if err == nil && st.Mode()&dirMode != dirMode {
		err = root.Chmod(name, dirMode)
	}
	if err != nil {
		_ = root.Remove(name) // It is empty.
	}
	return err
}

// CreateTemp is os.CreateTemp.
func CreateTemp(dir, pattern string) (*os.File, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	if err := usable(f); err != nil {
		_ = os.Remove(f.Name()) // It was just made.
		return nil, err
	}
	return f, nil
}

// WriteFile writes a file, which it makes unless it is there. It then keeps its mode.
func WriteFile(path string, b []byte) error {
	f, err := OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Close())
}

// Mkfifo makes a fifo. It may be in a directory of another user: a link that has taken its place is not followed.
func Mkfifo(path string) error {
	if err := syscall.Mkfifo(path, uint32(fileMode)); err != nil {
		return &fs.PathError{Op: "mkfifo", Path: path, Err: err}
	}
	st, err := os.Lstat(path)
	if err == nil && st.Mode()&fileMode != fileMode {
		err = chmodItself(path, fileMode)
	}
	if err != nil {
		_ = os.Remove(path) // It was just made.
	}
	return err
}

// Touch makes an empty file unless there is one: a lock, say.
func Touch(path string) error {
	f, err := OpenFile(path, os.O_RDONLY|os.O_CREATE)
	if err != nil {
		return err
	}
	return f.Close()
}

// usable gives the owner of a file that was just made the rights that the umask has taken. It closes the file if it fails.
func usable(f *os.File) error {
	st, err := f.Stat()
	if err == nil && st.Mode().Perm()&fileMode != fileMode {
		err = f.Chmod(st.Mode().Perm() | fileMode)
		if errors.Is(err, fs.ErrPermission) {
			err = nil // Some file systems have one mode for all, and let nobody change it.
		}
	}
	if err != nil {
		_ = f.Close() // Nothing was written.
	}
	return err
}
