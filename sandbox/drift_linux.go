package sandbox

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
)

var (
	_ transport.Checker   = (*conn)(nil)
	_ transport.Enclosed  = (*conn)(nil)
	_ transport.Explainer = (*conn)(nil)
)

// Check implements [transport.Checker]. It looks for what must not be there, and
// then compares the mounts of the sandbox with those at its start. The kernel
// drops a mount when somebody on the host renames another file over what it is
// mounted on, as editors and git do to save a file: what was masked or read-only
// is so no longer.
//
// After a violation the command does not run: whoever gave it should know what
// the one before it did. The next sandbox protects what was made.
func (c *conn) Check() (lost error, goOn bool) {
	if err := violated(c.watch.look()); err != nil {
		return err, false
	}
	point, why, err := c.mounts.lost()
	if err != nil || point == "" {
		return nil, true // That it has ended is noticed elsewhere.
	}
	return &Error{
		Code:   ErrDrift,
		Detail: fmt.Sprintf("protection of %s was lost (%s); session restarted", point, why),
	}, c.policy.Drift == DriftRespawn
}

// mountTable is what is mounted in the namespace of a process, and notices what
// is gone. Its descriptor keeps the namespace. Close it; a nil one is closed, and
// has lost nothing.
//
// It is read each time. That it can be polled (proc(5), /proc/PID/mounts) is of
// no use: a directory that is renamed takes its mounts with it, and raises nothing.
type mountTable struct {
	fd     int      // of /proc/PID/mountinfo, and no os.File: Go would poll it
	text   []byte   // when it was last read
	points []string // at the start, "ROOT POINT"
	spare  []string // points that protect nothing that the sandbox could reach by them
	buf    []byte
}

func openMountTable(id proc.ID, spare ...string) (*mountTable, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/mountinfo", id.PID), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	t := &mountTable{fd: fd, spare: spare}
	if st, err := proc.Read(id.PID); err != nil || st.ID() != id {
		t.close()
		return nil, unix.ESRCH
	}
	if err = t.read(); err != nil {
		t.close()
		return nil, err
	}
	t.text = bytes.Clone(t.buf)
	t.points = pointsOf(t.text)
	return t, nil
}

func (t *mountTable) close() {
	if t != nil {
		_ = unix.Close(t.fd) // Read only.
	}
}

// lost names a mount point of the start that is one no longer, or shows something
// else by now, or none, and what happened to it.
func (t *mountTable) lost() (point, why string, err error) {
	if t == nil {
		return "", "", nil
	}
	if err := t.read(); err != nil || bytes.Equal(t.buf, t.text) {
		return "", "", err
	}
	now, at := make(map[string]bool), make(map[string]bool)
	for _, m := range pointsOf(t.buf) {
		_, point, _ := strings.Cut(m, " ")
		now[m], at[point] = true, true
	}
	for _, m := range t.points {
		_, point, _ := strings.Cut(m, " ")
		switch {
		case now[m] || slices.Contains(t.spare, point):
		case at[point]:
			return point, "it was moved or deleted on the host", nil
		default:
			return point, "file replaced on the host", nil
		}
	}
	t.text = bytes.Clone(t.buf) // Something was added: it is as good.
	return "", "", nil
}

// read reads the table into buf.
func (t *mountTable) read() error {
	const most = 1 << 20
	if t.buf == nil {
		t.buf = make([]byte, 0, 16<<10)
	}
	t.buf = t.buf[:0]
	for {
		if len(t.buf) == cap(t.buf) {
			t.buf = slices.Grow(t.buf, cap(t.buf))
		}
		n, err := unix.Pread(t.fd, t.buf[len(t.buf):cap(t.buf)], int64(len(t.buf)))
		if err != nil || n == 0 {
			return err
		}
		if t.buf = t.buf[:len(t.buf)+n]; len(t.buf) > most {
			return unix.EFBIG
		}
	}
}

// pointsOf lists what is mounted where, "ROOT POINT".
func pointsOf(mountinfo []byte) (list []string) {
	const root, point = 3, 4
	for line := range strings.Lines(string(mountinfo)) {
		if fields := strings.Fields(line); len(fields) > point {
			list = append(list, fields[root]+" "+fields[point])
		}
	}
	return list
}
