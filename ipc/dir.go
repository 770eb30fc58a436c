package ipc

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Prelude is what a persistent bash sources first.
//
//go:embed prelude.bash
var Prelude string

// Dir is the directory through which one bash is spoken to:
//
//	eval            the script that bash sources for the present command
//	status/record   bash's report; alone in its directory, so that nothing
//	                else raises events there
//	inner           PIPESTATUS, for commands that have a pipeline
//	return          sets $? before a command
//	state, exit     the shell's state, saved when idle and when bash exits
//	oldpwd          OLDPWD while a request has a directory of its own
//	out/            captures, one per stream and command
//
// Everything but the captures is overwritten in place and read through
// descriptors that limpet opened when it made the files. A command can do with the
// directory what it likes: whatever is opened by name later is opened below it,
// whatever symlinks say, and is a regular file. A Dir is used by one goroutine at
// a time.
type Dir struct {
	path   string
	root   *os.Root // path; nothing in it leads out of it
	eval   pinned
	record pinned
	inner  pinned
	pool   pool

	evalSize int
	buf      [recordMax]byte // of whoever reads a record
}

// pinned is a file that limpet made and keeps open.
type pinned struct {
	path string
	f    *os.File
}

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// DiskError reports a runtime directory that cannot be used.
type DiskError struct {
	Dir string
	Err error
}

func (e *DiskError) Error() string {
	remedy := "set RuntimeDir, or XDG_RUNTIME_DIR, to a directory that can be written"
	if errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT) {
		remedy = "make room there, or set RuntimeDir to a directory with more"
	}
	return fmt.Sprintf("ipc: runtime directory %q: %v; %s", e.Dir, e.Err, remedy)
}

func (e *DiskError) Unwrap() error { return e.Err }

// NewDir makes the directory path and what bash needs in it. keep is the
// number of bytes that stay on disk at each end of a stream that goes on for
// too long. The caller closes it. Errors are [*DiskError].
func NewDir(path string, keep int64) (*Dir, error) {
	d := &Dir{path: path, pool: pool{dir: "out", keep: keep}}
	if err := d.make(); err != nil {
		d.Close()
		return nil, &DiskError{Dir: path, Err: err}
	}
	return d, nil
}

func (d *Dir) make() error {
	if err := d.openRoot(); err != nil {
		return err
	}
	for _, dir := range []string{"status", d.pool.dir} {
		if err := d.root.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	for _, file := range []struct {
		p    *pinned
		name string
	}{{&d.eval, "eval"}, {&d.record, "status/record"}, {&d.inner, "inner"}} {
		if file.p.f != nil && (file.p == &d.record || !deleted(file.p.f)) {
			continue // Bash has the record open, under whatever name.
		}
		if file.p.f != nil {
			_ = file.p.f.Close() // Deleted: nothing in it is wanted.
		}
		f, err := d.root.OpenFile(file.name, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
		if errors.Is(err, fs.ErrExist) {
			// Bash was quicker: its redirection made the file anew, and may
			// have reported in it.
			f, err = openRegular(d.root, file.name, os.O_RDWR)
		}
		if err != nil {
			return err
		}
		*file.p = pinned{filepath.Join(d.path, file.name), f}
		if file.p == &d.eval {
			d.evalSize = 0
		}
	}
	// Bash writes these by name. It finds them there, whatever its umask is.
	for _, name := range []string{stateName, exitName, oldDirName} {
		if err := d.touch(name); err != nil {
			return err
		}
	}
	return nil
}

// openRoot makes the directory and opens it, anew if it is another one by now.
func (d *Dir) openRoot() error {
	if err := os.Mkdir(d.path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	if d.root != nil {
		_ = d.root.Close() // Nothing is written by it.
	}
	d.root, d.pool.root = root, root
	return nil
}

// touch makes a file, unless there is something by that name.
func (d *Dir) touch(name string) error {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// openRegular opens a file that a command may have replaced: not through a
// symlink at its end, not out of root, and without waiting for the other side of
// a fifo.
func openRegular(root *os.Root, name string, flag int) (*os.File, error) {
	f, err := root.OpenFile(name, flag|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = f.Close() // Nothing was written.
		return nil, fmt.Errorf("ipc: %q was replaced by what is no file: %w", name, errors.Join(err, fs.ErrInvalid))
	}
	return f, nil
}

// StatusDir is the directory to watch.
func (d *Dir) StatusDir() string { return filepath.Join(d.path, "status") }

func (d *Dir) statusScript() string { return filepath.Join(d.path, "return") }

// Deleted reports whether somebody deleted the directory, or a part of it.
func (d *Dir) Deleted() bool { return deleted(d.eval.f) || deleted(d.inner.f) }

// Renew makes the directory, or what was deleted of it, anew.
func (d *Dir) Renew() error {
	d.pool.close() // Nobody finds these by name any more.
	if err := os.MkdirAll(filepath.Dir(d.path), dirMode); err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
	if err := d.make(); err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
	return nil
}

// Close removes the directory and all that is in it. It is safe to call twice.
func (d *Dir) Close() {
	for _, p := range []*pinned{&d.eval, &d.record, &d.inner} {
		if p.f != nil {
			_ = p.f.Close() // Its content is of no more use.
			p.f = nil
		}
	}
	d.pool.close()
	if d.root != nil {
		_ = d.root.Close() // Nothing is written by it.
		d.root = nil
	}
	_ = os.RemoveAll(d.path) // Best effort: what stays is swept when the program ends.
}

// padMax bounds the empty lines that bash reads for nothing.
const padMax = 256

// writeEval replaces the script that bash sources next. Bash has read the one
// before to its end when it reported.
func (d *Dir) writeEval(text string) error {
	if over := d.evalSize - len(text); over > 0 && over <= padMax {
		text += strings.Repeat("\n", over) // Cheaper than a system call that cuts.
	}
	n, err := d.eval.f.WriteAt([]byte(text), 0)
	if err == nil && n < d.evalSize {
		err = d.eval.f.Truncate(int64(n))
	}
	if err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
	d.evalSize = n
	return nil
}

// Start renders the start of a bash: the lines for its stdin. Before holds
// lines that run behind the prelude.
func (d *Dir) Start(id string, before string) (lines string, err error) {
	if err := d.writeEval(Prelude + before); err != nil {
		return "", err
	}
	return d.startLine(id), nil
}

// Run is a command on its way through the directory.
type Run struct {
	Outputs
	d    *Dir
	call Call
}

// Begin renders a command. It returns the lines for bash's stdin. The Run is
// closed by [Run.Release].
func (d *Dir) Begin(c Call, merge bool) (run *Run, lines string, err error) {
	run = &Run{d: d, call: c}
	if run.Outputs, err = d.pool.outputs(merge); err != nil {
		return nil, "", &DiskError{Dir: d.path, Err: err}
	}
	c.Stdout = run.stdout.path()
	if !merge {
		c.Stderr = run.stderr.path()
	}
	if c.Status != 0 {
		if err := d.writeReturn(); err != nil {
			run.Release()
			return nil, "", err
		}
	}
	if err := d.writeEval(d.evalScript(c)); err != nil {
		run.Release()
		return nil, "", err
	}
	run.call = c
	return run, d.lines(c), nil
}

// writeReturn makes, once, the script that sets $?.
func (d *Dir) writeReturn() error {
	f, err := d.root.OpenFile("return", os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err == nil {
		_, err = f.WriteString("\\builtin return \"$1\"\n")
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
	return nil
}

// Stdout is what bash gets as its own stdout: the status file. Bash and limpet
// share the file's offset, which is what lets limpet turn it back. It stays the
// Dir's.
func (d *Dir) Stdout() *os.File { return d.record.f }

// Rewind turns the status file back, before lines are sent to bash: the next
// record overwrites the last.
func (d *Dir) Rewind() { _, _ = d.record.f.Seek(0, io.SeekStart) } // A regular file can be sought.

// Printed returns what bash itself has printed since Rewind: what an exit trap
// says, if bash has ended without a record.
func (d *Dir) Printed() []byte {
	end, err := d.record.f.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil
	}
	const most = 64 << 10
	b, _ := readRange(d.record.f, 0, min(end, most)) // What can be read is what there is.
	return b
}

// Record returns bash's report if it has come.
func (d *Dir) Record(id string) (Record, bool) {
	// The record is the last thing that bash printed, whatever came before it.
	end, err := d.record.f.Seek(0, io.SeekCurrent)
	if err != nil || end == 0 {
		return Record{}, false
	}
	n, _ := d.record.f.ReadAt(d.buf[:], max(end-recordMax, 0)) // Short at the end of file, as it mostly is.
	return ParseRecord(d.buf[:n], id)
}

// Path is the directory.
func (d *Dir) Path() string { return d.path }

// fatalExpansion is the status with which ${x?} ends a script.
const fatalExpansion = 127

// Record returns bash's report on this command if it has come, with the status
// of the command itself and its pipeline where that was asked for.
func (r *Run) Record() (rec Record, pipeline []int, done bool) {
	rec, done = r.d.Record(r.call.ID)
	if !done {
		return rec, nil, false
	}
	if !r.call.Inner {
		return rec, nil, true
	}
	n, _ := r.d.inner.f.ReadAt(r.d.buf[:], 0) // As above.
	if status, pipeline, ok := parseInner(r.d.buf[:n], r.call.ID); ok {
		rec.Status = status
		return rec, pipeline, true
	}
	if r.call.Group && rec.Status == 1 {
		// The group was given up before its end. Only a fatal expansion does
		// that with status 1, and in a script its status is another.
		rec.Status = fatalExpansion
	}
	return rec, nil, true
}
