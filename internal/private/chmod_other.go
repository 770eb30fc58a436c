//go:build !linux

package private

import (
	"io/fs"

	"golang.org/x/sys/unix"
)

// chmodItself changes the mode of what has the path, and follows no link.
func chmodItself(path string, mode fs.FileMode) error {
	if err := unix.Fchmodat(unix.AT_FDCWD, path, uint32(mode), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "chmod", Path: path, Err: err}
	}
	return nil
}
