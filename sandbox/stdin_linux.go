package sandbox

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A descriptor leads to its file past all that is mounted in the sandbox: its owner can
// open /proc/self/fd/0 again to write, change the file's mode, and leave a directory by
// "..". So of the stdin that the caller has, the sandbox gets a pipe to which a file is
// copied, or a device that is read-only to its owner. Pipes, sockets and terminals are
// made for whoever reads them, and stay what they are.

// stdinPipe returns the end of a pipe that has the content of a regular file, and nil
// for what is none. The goroutine that feeds it ends with the file, or with the last
// reader: the caller closes the pipe when the process has its own.
func stdinPipe(f *os.File) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return nil, unix.EISDIR
	case unix.S_IFREG:
	default:
		return nil, nil
	}
	// A descriptor of its own: the caller may close f when the process runs.
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, firstFD)
	if err != nil {
		return nil, err
	}
	from := os.NewFile(uintptr(fd), f.Name())
	r, w, err := os.Pipe()
	if err != nil {
		_ = from.Close() // Nothing was read.
		return nil, err
	}
	go func() {
		_, _ = io.Copy(w, from) // EPIPE: the process does not want it all.
		_ = w.Close()           // End of file for the process.
		_ = from.Close()        // Read only.
	}()
	return r, nil
}

// stdinDevice returns the device of the host's that f is, opened anew on this thread,
// where it may be read-only, and nil for what is none of those that a sandbox has.
func stdinDevice(f *os.File) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil, err
	}
	for _, path := range devices {
		var device unix.Stat_t
		if unix.Stat(path, &device) == nil && device.Mode&unix.S_IFMT == unix.S_IFCHR && device.Rdev == st.Rdev {
			return os.Open(path)
		}
	}
	return nil, nil
}
