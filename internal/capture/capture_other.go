//go:build !linux

package capture

import (
	"os"
)

// users cannot be known here.
func users(*os.File) usage { return unknown }

// move gives the file another name.
func (c *capture) move(path string) error { return os.Rename(c.path(), path) }

// stat returns the size of the file, and whether it still has its name.
func (c *capture) stat() (size int64, linked bool) {
	st, err := c.f.Stat()
	if err != nil {
		return 0, false
	}
	return st.Size(), c.named()
}
