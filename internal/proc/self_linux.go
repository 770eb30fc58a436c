package proc

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Executable is a path by which other processes of this user reach this program's executable. While this program runs that is in /proc, and leads to
// this very file, also if it was replaced or removed since; where /proc hides it from them (prctl(2), PR_SET_DUMPABLE) it is the path of the file.
func Executable() (string, error) {
	if shown, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err == nil && shown == 1 {
		return fmt.Sprintf("/proc/%d/exe", os.Getpid()), nil
	}
	return os.Executable()
}
