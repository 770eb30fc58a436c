package sandbox

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A descriptor leads to its file past all that is mounted in the sandbox: its owner can
// open /proc/self/fd/0 again to write, change the file's mode, and leave a directory by
// "..". So for what the caller hands over, as stdin or above, the sandbox gets a pipe to which
// a file is copied, or a device that is read-only to its owner. Pipes, sockets and terminals
// stay what they are: they were made for their readers.

// inputPipe returns the read end of a pipe that gets the content of a regular file. It returns
// nil for other files and for nil. The goroutine that feeds the pipe ends with the file, or with
// the last reader: the caller closes the pipe when the process has its own.
func inputPipe(f *os.File) (*os.File, error) {
	if f == nil {
		return nil, nil
	}
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
	for _, path := range devices {
		var device unix.Stat_t
		if unix.Stat(path, &device) == nil && device.Mode&unix.S_IFMT == unix.S_IFCHR && device.Rdev == st.Rdev {
			return os.Open(path)
		}
	}
	return nil, nil
}
