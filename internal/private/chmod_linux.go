package private

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// chmodItself changes the mode of what has the path, unless that is a link by now. fchmodat2(2), which could be told so, is of Linux 6.6.
func chmodItself(path string, mode fs.FileMode) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd) // Only the mode is changed.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT == unix.S_IFLNK {
		return &fs.PathError{Op: "chmod", Path: path, Err: unix.ELOOP}
	}
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode)
}
