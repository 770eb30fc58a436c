package sandbox

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
)

var _ transport.Viewer = (*conn)(nil)

// Stat implements [transport.Viewer]. Symlinks lead where they lead inside, also
// those that a command has made (openat2(2), RESOLVE_IN_ROOT).
func (c *conn) Stat(path string) (fs.FileInfo, error) {
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", c.process.PID), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		defer unix.Close(root)
		if st, gone := proc.Read(c.process.PID); gone != nil || st.ID() != c.process {
			err = unix.ESRCH // The root may be another process'.
		}
	}
	fd := -1
	if err == nil {
		fd, err = unix.Openat2(root, path, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
		})
	}
	if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() // Nothing was written.
	return f.Stat()
}
