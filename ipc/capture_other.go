//go:build !linux

package ipc

import (
	"errors"
	"os"
)

// users cannot be known here.
func users(*os.File) usage { return unknown }

// punch is not to be had here: output is bounded in memory, not on disk.
func punch(*os.File, int64, int64) error { return errors.ErrUnsupported }

// move gives the file another name.
func (c *capture) move(path string) error { return os.Rename(c.path(), path) }

// stat returns the size of the file, and whether it still has its name.
func (c *capture) stat() (size int64, linked bool) {
	st, err := c.f.Stat()
	if err != nil {
		return 0, false
	}
	return st.Size(), !deleted(c.f)
}

// deleted reports that the file's name is gone or names another file.
func deleted(f *os.File) bool {
	st, err := f.Stat()
	if err != nil {
		return true
	}
	now, err := os.Stat(f.Name())
	return err != nil || !os.SameFile(st, now)
}
