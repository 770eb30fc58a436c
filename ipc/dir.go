package ipc

import (
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/capture"
	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/rundir"
)

// prelude is what a persistent bash sources first.
//
//go:embed prelude.bash
var prelude string

// dir is the directory through which one bash is spoken to:
//
//	eval            the script that bash sources for the present command
//	status/record   bash's report; alone in its directory, so that nothing
//	                else raises events there
//	inner           PIPESTATUS, for commands that have a pipeline
//	return          a script that sets $? before a command
//	state, exit     the shell's state, saved when idle and when bash exits
//	before          what a command hides from the session: OLDPWD, and the variables of its Env
//	refused         the pieces of a state that bash could not take
//	out/            captures, one per stream and command
//
// Everything but the captures is overwritten in place and read through
// descriptors that limpet opened when it made the files. A command can do with the
// directory what it likes: whatever is opened by name later is opened below it,
// whatever symlinks say, and is a regular file.
type dir struct {
	path   string
	owner  *files.Owner // whose the files are
	root   *os.Root     // path; nothing in it leads out of it
	self   *os.File     // path
	eval   pinned
	record pinned
	stdout *os.File // the same file as bash has it, whose offset is shared: so it can be turned back
	inner  pinned
	pool   *capture.Pool

	stateName string
	atExit    *savedAtExit // nil until SavedAtExit was called
	evalSize  int          // of the script that was written last
	intact    time.Time    // when the directory last changed, if there was no damage then
	unwatched bool         // the record has lost its name

	buf [recordMax]byte // of whoever reads a record
}

// pinned is a file that limpet made and keeps open.
type pinned struct {
	name string // in the directory
	path string
	f    *os.File
}

// DiskError reports a runtime directory that cannot be used, or that could not
// while a command ran: something of the command's Result is then missing.
type DiskError = files.DiskError

// ErrWriterStuck means that a Writer did not return from Write, although the
// command was stopped or its caller has given up. The goroutine that called it ends when it does.
var ErrWriterStuck = capture.ErrWriterStuck

// newDir makes the directory path and what bash needs in it. keep is the
// number of bytes that stay on disk at each end of a stream that goes on for
// too long. A bash that runs as another user is the owner; nil is this program's
// user. The caller closes it. Errors are [*DiskError].
func newDir(path string, keep int64, owner *files.Owner) (*dir, error) {
	d := &dir{path: path, owner: owner, stateName: stateName, pool: capture.NewPoolIn(outName, keep, owner)}
	if err := d.make(); err != nil {
		d.close()
		return nil, &DiskError{Dir: path, Err: err}
	}
	return d, nil
}

func (d *dir) make() error {
	if err := d.openRoot(); err != nil {
		return err
	}
	for _, dir := range []string{"status", outName} {
		if err := d.owner.Mkdir(d.root, dir); err != nil {
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
	for _, name := range []string{stateName, exitName, beforeName, forkName, refusedName} {
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
	outName    = "out"
)

// pin makes a file that stays open, unless it is there.
func (d *dir) pin(p *pinned, name string) error {
	if p.f != nil {
		if p == &d.record {
			d.unwatched = d.unwatched || same(d.root, p.name, p.f) != none
			return nil // Bash has it open, under whatever name.
		}
		if same(d.root, p.name, p.f) == none {
			return nil
		}
		_ = p.f.Close() // Nothing in it is wanted.
		p.f = nil
	}
	f, err := d.owner.Create(d.root, name)
	if errors.Is(err, fs.ErrExist) {
		// Bash was quicker: its redirection made the file anew, and may
		// have reported in it.
		if f, err = files.OpenRegular(d.root, name, os.O_RDWR); err == nil {
			err = d.owner.Made(f)
		}
	}
	if err != nil {
		return err
	}
	*p = pinned{name, filepath.Join(d.path, name), f}
	if p != &d.record {
		return nil
	}
	// Write only: a script that finds the descriptor could move the offset by reading.
	d.stdout, err = files.OpenRegular(d.root, name, os.O_WRONLY)
	return err
}

// openRoot makes the directory and opens it, anew if it is another one by now.
func (d *dir) openRoot() error {
	if err := private.Mkdir(d.path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if d.self != nil {
		_ = d.self.Chmod(files.DirMode) // It may be another one by now.
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return err
	}
	d.closeRoot()
	d.root = root
	d.pool.Reopen(root)
	if d.self, err = root.Open("."); err != nil {
		return err
	}
	return d.owner.GiveFile(d.self)
}

func (d *dir) closeRoot() {
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
func (d *dir) touch(name, text string) error {
	f, err := d.owner.Create(d.root, name)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// statusDir is the directory to watch.
func (d *dir) statusDir() string { return filepath.Dir(d.record.path) }

func (d *dir) statusScript() string { return filepath.Join(d.path, returnName) }

// renew makes the directory, or what was deleted of it, anew. The record raises no
// events from then on if it was deleted: bash goes on writing to the file that it
// has open.
func (d *dir) renew() error {
	d.pool.Clear() // Nobody finds these by name any more.
	if err := private.MkdirAll(filepath.Dir(d.path)); err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
	if err := d.make(); err != nil {
		return d.broken(err)
	}
	return nil
}

// close removes the directory and all that is in it. It is safe to call twice.
func (d *dir) close() {
	for _, p := range []*pinned{&d.eval, &d.record, &d.inner} {
		if p.f != nil {
			_ = p.f.Close() // Its content is of no more use.
			p.f = nil
		}
	}
	if d.stdout != nil {
		_ = d.stdout.Close() // As above.
		d.stdout = nil
	}
	d.pool.Clear()
	d.closeRoot()
	_ = rundir.Remove(d.path) // Best effort: what stays is swept when the program ends.
}

// padMax bounds the empty lines that bash reads for nothing.
const padMax = 256

// writeEval replaces the script that bash sources next. Bash has read the one
// before to its end when it reported.
func (d *dir) writeEval(text string) error {
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
	d.evalSize = len(text)
	if err != nil {
		return &DiskError{Dir: d.path, Err: err}
	}
	return nil
}

// emptyEval gives the room back that a large script takes on disk. Bash must have read it:
// it reads all of a script before it runs the first line.
func (d *dir) emptyEval() {
	if d.evalSize > files.RoomStep {
		_ = d.eval.f.Truncate(0) // If it fails, the next command finds out whether there is room.
		d.evalSize = 0
	}
}

// start renders the start of a bash: the lines for its stdin. Before holds
// lines that run behind the prelude.
func (d *dir) start(id string, before string) (lines string, err error) {
	if err := d.writeEval(prelude + before); err != nil {
		return "", err
	}
	return d.startLine(id), nil
}

// checkReturn makes the script that sets $? anew if it has another size: bash would
// end of one that is too large.
func (d *dir) checkReturn() error {
	if st, err := d.root.Lstat(returnName); err == nil && st.Size() == int64(len(returnScript)) {
		return nil
	}
	_ = d.root.Remove(returnName) // It may be gone.
	if err := d.touch(returnName, returnScript); err != nil {
		return d.broken(err)
	}
	return nil
}

// rewind turns the status file back, before lines are sent to bash: the next
// record overwrites the last.
func (d *dir) rewind() { _, _ = d.stdout.Seek(0, io.SeekStart) } // A regular file can be sought.

// printed returns what bash itself has printed since rewind: what an exit trap
// says, if bash has ended without a record.
func (d *dir) printed() []byte {
	end, err := d.stdout.Seek(0, io.SeekCurrent)
	if err != nil {
		return nil
	}
	const most = 64 << 10
	b, _ := files.ReadRange(d.record.f, 0, min(end, most)) // What can be read is what there is.
	return b
}

// reported returns bash's report if it has come.
func (d *dir) reported(id string) (Record, bool) {
	// The record is the last thing that bash printed, whatever came before it.
	end, err := d.stdout.Seek(0, io.SeekCurrent)
	if err != nil || end == 0 {
		return Record{}, false
	}
	n, _ := d.record.f.ReadAt(d.buf[:], max(end-recordMax, 0)) // Short at the end of file, as it mostly is.
	return ParseRecord(d.buf[:n], id)
}
