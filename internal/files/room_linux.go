package files

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	// plenty of free bytes and there is no more to be asked.
	plenty = 64 << 20

	// roomAt is how far behind the end of a file it is tried: no writer is there.
	roomAt = 1 << 30
)

// Room returns ENOSPC or EDQUOT if the file cannot grow. What the file system says
// of itself is not the whole truth: a tmpfs without a limit says 0, a quota and
// blocks that are root's do not show. So where it does not say that there is plenty,
// some is taken, and given back (fallocate(2)). Any other error tells nothing.
func Room(f *os.File) error {
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
	if err := unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, at, RoomStep); err != nil {
		if noRoom(err) {
			return err
		}
		return nil
	}
	_ = Punch(f, at, RoomStep) // What stays goes when the file is cut.
	return nil
}

// Punch gives a range of the file back to the file system (fallocate(2)).
func Punch(f *os.File, off, n int64) error {
	return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, n)
}
