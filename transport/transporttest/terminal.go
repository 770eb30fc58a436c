package transporttest

import (
	"os"

	"golang.org/x/sys/unix"
)

// foreground returns the process group in the foreground of a terminal.
func foreground(tty *os.File) (int, error) {
	return unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
}
