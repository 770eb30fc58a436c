package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Cursor tells which pid was given out last in this pid namespace (proc(5),
// /proc/loadavg): if it stands still, nothing was forked. It keeps a descriptor,
// since it is asked after every command. Close it.
type Cursor struct{ f *os.File }

// NewCursor opens a Cursor.
func NewCursor() (*Cursor, error) {
	f, err := os.Open("/proc/loadavg")
	if err != nil {
		return nil, err
	}
	return &Cursor{f}, nil
}

// Last returns the pid.
func (c *Cursor) Last() (int, error) {
	if c == nil {
		return 0, errors.ErrUnsupported
	}
	var buf [128]byte
	n, err := unix.Pread(int(c.f.Fd()), buf[:], 0)
	if err != nil {
		return 0, err
	}
	text := bytes.TrimSpace(buf[:n])
	return strconv.Atoi(string(text[bytes.LastIndexByte(text, ' ')+1:]))
}

// Close closes the descriptor. A nil Cursor has none.
func (c *Cursor) Close() {
	if c != nil {
		_ = c.f.Close() // Read only: nothing to lose.
	}
}
