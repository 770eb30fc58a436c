package capture

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// users tells whether anybody but us has the file open: if nobody has, the
// kernel grants a write lease (fcntl(2), F_SETLEASE).
func users(f *os.File) usage {
	fd := f.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); err == unix.EAGAIN {
		return others
	} else if err != nil {
		return unknown
	}
	// The lease goes at once: while it is held, an open by anybody else would
	// raise SIGIO here.
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK); err != nil {
		return unknown
	}
	return nobody
}

// stat returns the size of the file, and whether it still has a name.
func (c *capture) stat() (size int64, linked bool) {
	var st unix.Stat_t
	if err := unix.Fstat(int(c.f.Fd()), &st); err != nil {
		return 0, false
	}
	return st.Size, st.Nlink > 0
}

// move gives the file itself another name, whatever has its own by now, and takes
// that away. It refuses a file that has yet another name, by which somebody could
// go on writing to it (linkat(2), AT_SYMLINK_FOLLOW).
func (c *capture) move(path string) error {
	self := "/proc/self/fd/" + strconv.Itoa(int(c.f.Fd()))
	if err := unix.Linkat(unix.AT_FDCWD, self, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW); err != nil {
		return &os.LinkError{Op: "linkat", Old: c.path(), New: path, Err: err}
	}
	_ = c.root.Remove(c.name) // What has the name now is no matter.
	var st unix.Stat_t
	if err := unix.Fstat(int(c.f.Fd()), &st); err != nil || st.Nlink != 1 {
		_ = os.Remove(path) // It was just made.
		return errHeld
	}
	return nil
}
