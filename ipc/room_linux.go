package ipc

import (
	"os"

	"golang.org/x/sys/unix"
)

// room returns ENOSPC or EDQUOT if the file cannot grow. What the file system says
// of itself is not the whole truth: a tmpfs without a limit says 0, a quota and
// blocks that are root's do not show. So where it does not say that there is plenty,
// some is taken, and given back (fallocate(2)). Any other error tells nothing.
func room(f *os.File) error {
	fd := int(f.Fd())
	var fs unix.Statfs_t
	if err := unix.Fstatfs(fd, &fs); err != nil || fs.Bavail > plenty/uint64(max(fs.Bsize, 1)) {
		return nil //nolint:nilerr // There is no telling.
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil //nolint:nilerr // As above.
	}
	at := st.Size + roomAt
	if err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, at, roomStep); err != nil {
		if noRoom(err) {
			return err
		}
		return nil
	}
	_ = punch(f, at, roomStep) // What stays goes when the file is cut.
	return nil
}
