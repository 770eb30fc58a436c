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

// openRoot opens the root directory of a process. It needs the right to trace the
// process (proc(5), /proc/PID/root), which root lacks in many containers.
func openRoot(id proc.ID) *os.File {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/root", id.PID), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	root := os.NewFile(uintptr(fd), "/")
	if st, err := proc.Read(id.PID); err != nil || st.ID() != id {
		_ = root.Close() // It may be another process'.
		return nil
	}
	return root
}

// Stat implements [transport.Viewer]. Symlinks lead where they lead inside, also
// those that a command has made (openat2(2), RESOLVE_IN_ROOT, of Linux 5.6).
func (c *conn) Stat(path string) (fs.FileInfo, error) {
	if c.root == nil {
		return nil, &fs.PathError{Op: "stat", Path: path, Err: transport.ErrUnseen}
	}
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	fd, err := unix.Openat2(int(c.root.Fd()), path, how)
	// Somebody on this machine renames files: the kernel cannot be sure then of what "..".
	for range 100 {
		if err != unix.EAGAIN {
			break
		}
		fd, err = unix.Openat2(int(c.root.Fd()), path, how)
	}
	switch err {
	case nil:
	case unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.EACCES, unix.ENAMETOOLONG:
		return nil, &fs.PathError{Op: "stat", Path: path, Err: err}
	default:
		return nil, &fs.PathError{Op: "stat", Path: path, Err: transport.ErrUnseen}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close() // Nothing was written.
	return f.Stat()
}
