package testenv

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CloseInherited keeps descriptors that whatever runs the tests has left open from the programs
// that the tests start: what those programs find open would depend on it.
func CloseInherited() {
	entries, _ := os.ReadDir("/proc/self/fd") // Without /proc they stay open.
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}
