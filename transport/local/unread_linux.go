package local

import (
	"os"

	"golang.org/x/sys/unix"
)

// unread asks the pipe how much is in it. Either end can tell (pipe(7)).
func unread(pipe *os.File) int {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }) // A closed pipe has nothing.
	if err != nil {
		return 0
	}
	return n
}
