package sandbox

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// A descriptor leads to its file past all that is mounted in the sandbox: its owner can
// open /proc/self/fd/0 again to write, change the file's mode, and leave a directory by
// "..". So for what the caller hands over, as stdin or above, the sandbox gets a pipe to which
// a file, a disk or a named pipe is copied, or a device that is read-only to its owner. Pipes
// without a name, sockets and terminals stay what they are: they were made for their readers.

// inputPipe returns the read end of a pipe, which belongs to owner and gets the content of f. It
// returns nil if f is nil, or is handed over itself. The goroutine that feeds the pipe
// ends with the file, or with the last reader: the caller closes the pipe when the process has
// its own.
func inputPipe(f *os.File, owner Credential) (*os.File, error) {
	if f == nil {
		return nil, nil
	}
	if copied, err := isCopied(f); !copied {
		return nil, err
	}
	// A descriptor of its own: the caller may close f when the process runs.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, firstFD)
	if err != nil {
		return nil, err
	}
	from := os.NewFile(uintptr(fd), f.Name())
	r, w, err := os.Pipe()
	if err == nil && owner != ourselves() {
		// Else nobody could open /dev/stdin.
		if err = r.Chown(int(owner.UID), int(owner.GID)); err != nil {
			_, _ = r.Close(), w.Close() // Of no use.
		}
	}
	if err != nil {
		_ = from.Close() // Nothing was read.
		return nil, err
	}
	go func() {
		feed(w, from)
		_ = w.Close()    // End of file for the process.
		_ = from.Close() // Read only.
	}()
	return r, nil
}

// isCopied says whether the sandbox gets a copy of what f is of. The error says that f cannot be
// handed over.
func isCopied(f *os.File) (bool, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return false, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG, unix.S_IFBLK:
		return true, nil
	case unix.S_IFIFO:
		var fs unix.Statfs_t
		err := unix.Fstatfs(int(f.Fd()), &fs)
		return err == nil && fs.Type != unix.PIPEFS_MAGIC, err
	case unix.S_IFDIR:
		return false, unix.EISDIR
	case unix.S_IFCHR:
		if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err != nil && deviceOf(st.Rdev) == "" {
			return false, errors.New("it is a device that a sandbox does not have")
		}
	}
	return false, nil
}

// feed copies until the end, or until nobody reads what it writes: a named pipe may have
// nothing to say for long, and Limpet would wait for it after the sandbox.
func feed(w, from *os.File) {
	const some = 64 << 10
	buf := make([]byte, some)
	fds := []unix.PollFd{{Fd: int32(from.Fd()), Events: unix.POLLIN}, {Fd: int32(w.Fd())}}
	for {
		if _, err := unix.Poll(fds, -1); err == unix.EINTR {
			continue
		} else if err != nil || fds[1].Revents != 0 {
			return
		}
		n, err := unix.Read(int(fds[0].Fd), buf)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN: // Another reader of the pipe was faster.
			continue
		case err != nil || n == 0:
			return
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return // EPIPE: the process does not want it all.
		}
	}
}

// deviceOf is the one of devices that has this number, or empty.
func deviceOf(number uint64) string {
	for _, path := range devices {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == number {
			return path
		}
	}
	return ""
}

// inputDevice returns the device of the host's that f is, opened anew on this thread,
// where it may be read-only, and nil for what is none of those that a sandbox has, and for nil.
func inputDevice(f *os.File) (*os.File, error) {
	if f == nil {
		return nil, nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil, err
	}
	if path := deviceOf(st.Rdev); path != "" {
		return os.Open(path)
	}
	return nil, nil
}
