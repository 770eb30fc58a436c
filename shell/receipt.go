package shell

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// cpuClock measures what a command costs by bash's own times and those of its
// children. It reads them at the command's first tick: shorter commands cost
// nothing that a clock of 10 ms could tell.
type cpuClock struct {
	started      bool
	user, system time.Duration
}

func (c *cpuClock) begin(b *bash) {
	if c.started {
		return
	}
	if st, err := proc.Read(b.id.PID); err == nil {
		c.started = true
		c.user, c.system = st.CPU()
	}
}

func (c *cpuClock) end(b *bash) (user, system time.Duration) {
	if !c.started {
		return 0, 0
	}
	st, err := proc.Read(b.id.PID)
	if err != nil {
		return 0, 0 // Bash is gone, and with it the account.
	}
	user, system = st.CPU()
	return user - c.user, system - c.system
}

// trueDir returns where bash really is: what it says in $PWD, which keeps the
// names of symlinks, if that is the directory that the kernel knows it to be
// in. A script may assign to PWD.
func (b *bash) trueDir(said string) string {
	if said == b.pwd {
		// Still right, unless somebody moved the directory: the kernel is
		// asked when the next command wants to start there.
		return said
	}
	actual, err := proc.Dir(b.id.PID)
	if err != nil || actual == said || filepath.IsAbs(said) && b.sameDir(said, actual) {
		return said
	}
	if path, deleted := strings.CutSuffix(actual, " (deleted)"); deleted && b.checkDir(actual) != nil {
		// The kernel has no better name for it than bash has, and the directory may
		// be made again (proc_pid_cwd(5)).
		if filepath.IsAbs(said) {
			return said
		}
		return path
	}
	return actual
}

// inDeadDir reports whether the directory that bash is in was removed, and there is another one by
// its name: a branch that was checked out again, a build directory that was cleaned. Bash would stay in
// the dead one for ever.
func (b *bash) inDeadDir() bool {
	return proc.InDeadDir(b.id.PID) && b.pwd != "" && b.checkDir(b.pwd) == nil
}

// checkDir returns a [*DirError] if bash does not find the directory.
func (b *bash) checkDir(dir string) error { return transport.CheckDirOf(b.conn, dir) }

// sameDir reports whether two paths of bash's are one directory.
func (b *bash) sameDir(one, other string) bool {
	if one == other {
		return true
	}
	stat := os.Stat
	if v, ok := b.conn.(transport.Viewer); ok {
		stat = v.Stat
	}
	x, err := stat(one)
	if errors.Is(err, transport.ErrUnseen) {
		return filepath.Clean(one) == filepath.Clean(other)
	}
	if err != nil {
		return false
	}
	y, err := stat(other)
	return err == nil && os.SameFile(x, y)
}

// misplaced finds, and takes out, a record at the end of the command's output.
// It went there because the script closed the descriptors by which bash would
// have got its own stdout back.
func misplaced(out *command.Output, id string) (ipc.Record, bool) {
	last := &out.Head
	if len(out.Tail) > 0 {
		last = &out.Tail
	}
	at := ipc.IndexRecord(*last, id)
	if at < 0 {
		return ipc.Record{}, false
	}
	rec, ok := ipc.ParseRecord((*last)[at:], id)
	if ok {
		out.Total -= int64(len(*last) - at)
		*last = (*last)[:at]
	}
	return rec, ok
}

// withoutTraces leaves out what set -x says of limpet's own lines.
func (b *bash) withoutTraces(stderr []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(stderr) {
		if !bytes.Contains(line, []byte(b.exchange.Path())) {
			kept = append(kept, line...)
		}
	}
	return kept
}

// appendOutput adds what bash itself wrote to the end of a stream.
func appendOutput(out *command.Output, b []byte, live io.Writer) {
	if len(b) == 0 {
		return
	}
	if out.Omitted() > 0 || len(out.Tail) > 0 {
		out.Tail = append(out.Tail, b...)
	} else {
		out.Head = append(out.Head, b...)
	}
	out.Total += int64(len(b))
	if live != nil {
		_, _ = live.Write(b) // As with the rest: what is kept is in the Result.
	}
}
