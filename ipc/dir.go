package ipc

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/rundir"
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
//	return          a script that sets $? before a command
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
	owner  *Owner   // whose the files are
	root   *os.Root // path; nothing in it leads out of it
	self   *os.File // path
	eval   pinned
	record pinned
	inner  pinned
	pool   pool

	stateName string
	intact    time.Time // when the directory last changed, if there was no damage then
	unwatched bool      // the record has lost its name

	buf [recordMax]byte // of whoever reads a record
}

// pinned is a file that limpet made and keeps open.
type pinned struct {
	name string // in the directory
	path string
	f    *os.File
}

const (
	dirMode  = 0o700
	fileMode = 0o600
)

// DiskError reports a runtime directory that cannot be used, or that could not
// while a command ran: something of the command's Result is then missing.
type DiskError struct {
	Dir string
	Err error
}

func (e *DiskError) Error() string {
	remedy := "set RuntimeDir, or XDG_RUNTIME_DIR, to a directory that can be written"
	switch {
	case noRoom(e.Err):
		remedy = "make room there, or set RuntimeDir to a directory with more"
	case isOwnerError(e.Err):
		remedy = "it takes root with CAP_CHOWN to run a shell as another user"
	case errors.Is(e.Err, ErrDeleted):
		remedy = "set RuntimeDir, or XDG_RUNTIME_DIR, to a directory that nobody tidies up"
	}
	return fmt.Sprintf("ipc: runtime directory %q: %v; %s", e.Dir, e.Err, remedy)
}

func (e *DiskError) Unwrap() error { return e.Err }

// NewDir makes the directory path and what bash needs in it. keep is the
// number of bytes that stay on disk at each end of a stream that goes on for
// too long. A bash that runs as another user is the owner; nil is this program's
// user. The caller closes it. Errors are [*DiskError].
func NewDir(path string, keep int64, owner *Owner) (*Dir, error) {
	d := &Dir{path: path, owner: owner, stateName: stateName, pool: pool{dir: "out", keep: keep, owner: owner}}
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
		if err := d.owner.mkdir(d.root, dir); err != nil {
			return err
		}
	}
	for _, file := range []struct {
		p    *pinned
		name string
	}{{&d.eval, evalName}, {&d.record, recordName}, {&d.inner, innerName}} {
		if err := d.pin(file.p, file.name); err != nil {
			return err
		}
	}
	// Bash writes these by name. It finds them there, whatever its umask is.
	for _, name := range []string{stateName, exitName, oldDirName} {
		if err := d.touch(name, ""); err != nil {
			return err
		}
	}
	return d.touch(returnName, returnScript)
}

// returnScript sets $? to its argument.
const returnScript = "\\builtin return \"$1\"\n"

// What is in the directory. See also state.go.
const (
	evalName   = "eval"
	recordName = "status/record"
	innerName  = "inner"
	returnName = "return"
)

// pin makes a file that stays open, unless it is there.
func (d *Dir) pin(p *pinned, name string) error {
	if p.f != nil {
		if p == &d.record {
			d.unwatched = d.unwatched || same(d.root, p.name, p.f) != None
			return nil // Bash has it open, under whatever name.
		}
		if same(d.root, p.name, p.f) == None {
			return nil
		}
		_ = p.f.Close() // Nothing in it is wanted.
		p.f = nil
	}
	f, err := d.owner.create(d.root, name)
	if errors.Is(err, fs.ErrExist) {
		// Bash was quicker: its redirection made the file anew, and may
		// have reported in it.
		if f, err = openRegular(d.root, name, os.O_RDWR); err == nil {
			err = d.owner.made(f)
		}
	}
	if err != nil {
		return err
	}
	*p = pinned{name, filepath.Join(d.path, name), f}
	return nil
}

// openRoot makes the directory and opens it, anew if it is another one by now.
func (d *Dir) openRoot() error {
	if err := os.Mkdir(d.path, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if d.self != nil {
		_ = d.self.Chmod(dirMode) // It may be another one by now.
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	d.closeRoot()
	d.root, d.pool.root = root, root
	if d.self, err = root.Open("."); err != nil {
		return err
	}
	return d.owner.give(d.self)
}

func (d *Dir) closeRoot() {
	if d.root != nil {
		_ = d.root.Close() // Nothing is written by it.
		d.root = nil
	}
	if d.self != nil {
		_ = d.self.Close() // As above.
		d.self = nil
	}
}

// touch makes a file, unless there is something by that name.
func (d *Dir) touch(name, text string) error {
	f, err := d.owner.create(d.root, name)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
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
func (d *Dir) StatusDir() string { return filepath.Dir(d.record.path) }

func (d *Dir) statusScript() string { return filepath.Join(d.path, returnName) }

// Renew makes the directory, or what was deleted of it, anew. The record raises no
// events from then on if it was deleted: bash goes on writing to the file that it
// has open.
func (d *Dir) Renew() error {
	d.pool.close() // Nobody finds these by name any more.
	if err := os.MkdirAll(filepath.Dir(d.path), dirMode); err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
	if err := d.make(); err != nil {
		return d.broken(err)
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
	d.closeRoot()
	_ = rundir.Remove(d.path) // Best effort: what stays is swept when the program ends.
}

// padMax bounds the empty lines that bash reads for nothing.
const padMax = 256

// writeEval replaces the script that bash sources next. Bash has read the one
// before to its end when it reported.
func (d *Dir) writeEval(text string) error {
	size, err := d.eval.f.Seek(0, io.SeekEnd) // A command may have made it larger.
	over := size - int64(len(text))
	if over > 0 && over <= padMax {
		text += strings.Repeat("\n", int(over)) // Cheaper than a system call that cuts.
		over = 0
	}
	if err == nil {
		_, err = d.eval.f.WriteAt([]byte(text), 0)
	}
	if err == nil && over > 0 {
		err = d.eval.f.Truncate(int64(len(text)))
	}
	if err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
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
		return nil, "", d.broken(err)
	}
	c.Stdout = run.stdout.path()
	if !merge {
		c.Stderr = run.stderr.path()
	}
	if c.Status != 0 {
		if err := d.checkReturn(); err != nil {
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

// checkReturn makes the script that sets $? anew if it has another size: bash would
// end of one that is too large.
func (d *Dir) checkReturn() error {
	if st, err := d.root.Lstat(returnName); err == nil && st.Size() == int64(len(returnScript)) {
		return nil
	}
	_ = d.root.Remove(returnName) // It may be gone.
	if err := d.touch(returnName, returnScript); err != nil {
		return d.broken(err)
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
	if !r.call.Inner && r.call.Dir == "" {
		return rec, nil, true
	}
	n, _ := r.d.inner.f.ReadAt(r.d.buf[:], 0) // As above.
	if why, ok := bytes.CutSuffix(r.d.buf[:n], []byte(noDir(r.call.ID)+"\n")); ok && r.call.Dir != "" {
		rec.NoDir = string(why)
		return rec, nil, true
	}
	if !r.call.Inner {
		return rec, nil, true
	}
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
