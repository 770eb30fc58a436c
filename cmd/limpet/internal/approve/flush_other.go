//go:build !linux

package approve

import "golang.org/x/sys/unix"

// flush drops what was typed and not read yet.
func flush(fd int) error {
	const forReading = 1 // FREAD (fcntl.h)
	return unix.IoctlSetPointerInt(fd, unix.TIOCFLUSH, forReading)
}
