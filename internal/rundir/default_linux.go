package rundir

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// shmRoom is what /dev/shm must have free to be used: a container often has
// 64 MB of it, which one command's output could fill.
const shmRoom = 256 << 20

// Default returns the first of $XDG_RUNTIME_DIR, /dev/shm if it has room, and
// the temp directory that can be written. The first two are kept in memory,
// which makes a command twice as fast as on a disk. $XDG_RUNTIME_DIR is for its user
// alone (XDG base directory specification): it is not for what other users shall pass.
func Default(passable bool) string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" && !passable && writable(dir) {
		return dir
	}
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err == nil && st.Bavail*uint64(st.Bsize) >= shmRoom && writable("/dev/shm") {
		return "/dev/shm"
	}
	return os.TempDir()
}

func writable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

func ownedByUs(st fs.FileInfo) bool {
	return int(st.Sys().(*syscall.Stat_t).Uid) == os.Getuid()
}
