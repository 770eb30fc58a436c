package ipc

import (
	"os"

	"golang.org/x/sys/unix"
)

// exclusive reports that nobody but us has the file open: only then does the
// kernel grant a write lease (fcntl(2), F_SETLEASE). Where leases are not to
// be had, as on NFS, it is false and the file is not used again.
func exclusive(f *os.File) bool {
	fd := f.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		return false
	}
	// The lease goes at once: while it is held, an open by anybody else would
	// raise SIGIO here.
	_, err := unix.FcntlInt(fd, unix.F_SETLEASE, unix.F_UNLCK)
	return err == nil
}

// punch gives a range of the file back to the file system (fallocate(2)).
func punch(f *os.File, off, n int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}

// stat returns the size of the file, and whether it still has a name.
func (c *capture) stat() (size int64, linked bool) {
	var st unix.Stat_t
	if err := unix.Fstat(int(c.f.Fd()), &st); err != nil {
		return 0, false
	}
	return st.Size, st.Nlink > 0
}

// deleted reports that the file has no name any more.
func deleted(f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) != nil || st.Nlink == 0
}
