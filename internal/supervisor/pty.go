package supervisor

import (
	"fmt"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// OpenPTY makes a terminal. The master can be waited for, with deadlines. The caller
// closes both.
func OpenPTY(size Size) (master, slave *os.File, err error) {
	fail := func(err error, files ...*os.File) (*os.File, *os.File, error) {
		for _, f := range files {
			_ = f.Close() // Of no use.
		}
		return nil, nil, fmt.Errorf("making a terminal: %w", err)
	}
	m, slave, err := pty.Open()
	if err != nil {
		return fail(err)
	}
	if err := pty.Setsize(m, &pty.Winsize{Rows: size.Rows, Cols: size.Cols}); err != nil {
		return fail(err, m, slave)
	}
	// It is opened in blocking mode, where no Close frees a Read: a copy is not.
	fd, err := unix.FcntlInt(m.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	_ = m.Close() // Only the copy is used.
	if err != nil {
		return fail(err, slave)
	}
	if err := syscall.SetNonblock(fd, true); err != nil {
		_ = syscall.Close(fd) // Of no use.
		return fail(err, slave)
	}
	return os.NewFile(uintptr(fd), "ptmx"), slave, nil
}
