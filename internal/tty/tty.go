// Package tty makes pseudo-terminals whose masters can be waited for.
package tty

import (
	"fmt"
	"os"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// Size is that of a terminal, in characters.
type Size struct{ Rows, Cols uint16 }

// Open makes a terminal. Reads and writes of the master end at its deadlines, and when it
// is closed. The caller closes both.
func Open(size Size) (master, slave *os.File, err error) {
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
	if err := Resize(m, size); err != nil {
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

// Resize tells the terminal its size: the program in the foreground gets SIGWINCH.
func Resize(master *os.File, size Size) error {
	conn, err := master.SyscallConn() // Fd would make it blocking again.
	if err != nil {
		return err
	}
	ws := unix.Winsize{Row: size.Rows, Col: size.Cols}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &ws) }); err != nil {
		return err
	}
	return failed
}

// Foreground returns the process group that the terminal's keys go to; 0 if there is none.
func Foreground(master *os.File) (pgrp int, err error) {
	conn, err := master.SyscallConn()
	if err != nil {
		return 0, err
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { pgrp, failed = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }); err != nil {
		return 0, err
	}
	return pgrp, failed
}

// LineMode reports whether the terminal collects whole lines before the program gets
// them (termios(3), canonical mode), and returns the characters besides newline that end one.
func LineMode(master *os.File) (on bool, ends []byte) {
	conn, err := master.SyscallConn()
	if err != nil {
		return false, nil
	}
	_ = conn.Control(func(fd uintptr) { // If it is closed, nothing is on.
		t, err := unix.IoctlGetTermios(int(fd), getTermios)
		if err != nil || t.Lflag&unix.ICANON == 0 {
			return
		}
		on = true
		ends = []byte{'\n', t.Cc[unix.VEOF], t.Cc[unix.VEOL], t.Cc[unix.VEOL2]}
		if t.Iflag&unix.ICRNL != 0 {
			ends = append(ends, '\r')
		}
	})
	return on, ends
}
