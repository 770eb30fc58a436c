// Package tty makes pseudo-terminals whose masters can be waited for.
package tty

import (
	"bytes"
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

// LineMode is how a terminal collects whole lines before the program gets them (termios(3),
// canonical mode). The zero value is that of one that does not.
type LineMode struct {
	on    bool
	ends  []byte // end a line, besides newline
	drops []byte // drop the line: the key that kills it, and those that signal
	erase byte   // drops a character; 0 if none does
}

// ReadLineMode reads how the terminal is set now; the zero value if it is closed.
func ReadLineMode(master *os.File) (m LineMode) {
	conn, err := master.SyscallConn()
	if err != nil {
		return m
	}
	_ = conn.Control(func(fd uintptr) { // If it is closed, nothing is on.
		t, err := unix.IoctlGetTermios(int(fd), getTermios)
		if err != nil || t.Lflag&unix.ICANON == 0 {
			return
		}
		const disabled = 0 // _POSIX_VDISABLE
		m.on, m.erase = true, t.Cc[unix.VERASE]
		for _, c := range []int{unix.VEOF, unix.VEOL, unix.VEOL2} {
			if t.Cc[c] != disabled {
				m.ends = append(m.ends, t.Cc[c])
			}
		}
		if t.Iflag&unix.ICRNL != 0 {
			m.ends = append(m.ends, '\r')
		}
		drops := []int{unix.VKILL}
		if t.Lflag&unix.ISIG != 0 && t.Lflag&unix.NOFLSH == 0 {
			drops = append(drops, unix.VINTR, unix.VQUIT, unix.VSUSP)
		}
		for _, c := range drops {
			if t.Cc[c] != disabled {
				m.drops = append(m.drops, t.Cc[c])
			}
		}
	})
	return m
}

// Count follows the line that is being typed, of so many bytes, through what is typed next.
// It returns how long the line is then that has no end yet, and the longest that there
// was; 0 for both where lines are not collected.
func (m LineMode) Count(line int, typed []byte) (rest, longest int) {
	if !m.on {
		return 0, 0
	}
	for _, c := range typed {
		switch {
		case c == '\n' || bytes.IndexByte(m.ends, c) >= 0 || bytes.IndexByte(m.drops, c) >= 0:
			line = 0
		case c == m.erase && c != 0:
			line = max(line-1, 0)
		default:
			line++
		}
		longest = max(longest, line)
	}
	return line, longest
}
