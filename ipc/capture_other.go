//go:build !linux

package ipc

import (
	"errors"
	"os"
	"time"
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
	return st.Size(), same(c.root, c.name, c.f) == None
}

// changeTime is not asked for here: each look is a thorough one.
func changeTime(*os.File) (changed time.Time, linked bool) { return time.Time{}, false }
