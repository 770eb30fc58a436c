package ipc

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// changeTime returns when something was last made, deleted or renamed in the
// directory, and whether it still has a name itself. No program can set that time.
func changeTime(dir *os.File) (changed time.Time, linked bool) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return time.Time{}, false
	}
	return time.Unix(st.Ctim.Unix()), st.Nlink > 0
}
