package transfer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/private"
)

// part is a file that is being written: beside its place, under a temporary name. It stays when a copy is cut, for the next one
// to go on with. It is locked: two programs never write the same one. Its methods are for one goroutine.
type part struct {
	l          *Local
	root       *os.Root
	dir        string // the root, for errors
	path, temp string // below the root
	entry      Entry

	file *os.File
	next int64 // what is written
	sum  hash.Hash
}

// partPrefix begins the names of temporary files.
const partPrefix = ".limpet-part-"

// partOf is the temporary name of a path: the same for each copy, and of a length that any file system takes.
func partOf(file string) string {
	sum := sha256.Sum256([]byte(path.Base(file)))
	const enough = 16
	return in(path.Dir(file), partPrefix+hex.EncodeToString(sum[:enough]))
}

// openPart opens the part of a file, and reads what is there of it, for its sum. Keep, commit or discard it.
func (l *Local) openPart(ctx context.Context, root, below string, e Entry) (p *part, err error) {
	if err := checkPath(below); err != nil || below == "" {
		return nil, errors.Join(err, fs.ErrInvalid)
	}
	top, err := l.open(root)
	if err != nil {
		return nil, err
	}
	p = &part{l: l, root: top, dir: root, path: below, temp: partOf(below), entry: e, sum: sha256.New()}
	if err := p.open(ctx); err != nil {
		return nil, errors.Join(err, top.Close())
	}
	err = p.begin(ctx)
	if noRoom(err) {
		p.discard()
	} else if err != nil {
		p.keep()
	}
	return p, err
}

// lockPatience is how long a part may be locked by a process that has lost its connection, and has not noticed yet.
const lockPatience = 10 * time.Second

// open opens and locks the file.
func (p *part) open(ctx context.Context) error {
	for began := time.Now(); ; {
		f, err := p.openOrMake()
		if err != nil {
			return err
		}
		if f != nil {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			st, lstat := p.root.Lstat(p.temp)
			if !errors.Is(err, unix.EWOULDBLOCK) && lstat == nil && isSame(f, st) { // A file system without locks has to do without.
				p.file = f
				return nil
			}
			_ = f.Close() // Nothing was written: it is locked, or has got its name since.
		}
		if time.Since(began) > lockPatience {
			return errTaken
		}
		const pause = 50 * time.Millisecond
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// openOrMake opens the file, or makes it. A link of its name, and what is another user's, is removed: os.Root would follow the link, though not
// out of the root. It returns nil if somebody else was quicker.
func (p *part) openOrMake() (*os.File, error) {
	st, err := p.root.Lstat(p.temp)
	if err == nil && !isOurs(st) {
		if err := p.root.Remove(p.temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		err = fs.ErrNotExist
	}
	if errors.Is(err, fs.ErrNotExist) {
		f, err := private.OpenIn(p.root, p.temp, os.O_RDWR|os.O_CREATE|os.O_EXCL) // That follows no link.
		if errors.Is(err, fs.ErrExist) {
			return nil, nil
		}
		return f, err
	}
	if err != nil {
		return nil, err
	}
	return openSame(p.root, p.temp, os.O_RDWR, st)
}

// openSame opens the file that st is of; nil if it is another one by now.
func openSame(root *os.Root, name string, flag int, st fs.FileInfo) (*os.File, error) {
	f, err := root.OpenFile(name, flag|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !isSame(f, st) {
		_ = f.Close() // Nothing was written.
		return nil, nil
	}
	return f, nil
}

// isOurs reports whether a file is a regular one, of this user and of one name.
func isOurs(st fs.FileInfo) bool {
	sys, ok := st.Sys().(*syscall.Stat_t)
	return ok && st.Mode().IsRegular() && int(sys.Uid) == os.Geteuid() && sys.Nlink == 1
}

func isSame(f *os.File, st fs.FileInfo) bool {
	own, err := f.Stat()
	return err == nil && os.SameFile(own, st)
}

// begin sums up what is there, and looks whether there is room for the rest.
func (p *part) begin(ctx context.Context) error {
	st, err := p.file.Stat()
	if err != nil {
		return err
	}
	if st.Size() > p.entry.Size {
		err = p.reset()
	} else if p.next = st.Size(); p.next > 0 {
		err = sumOf(ctx, p.sum, io.NewSectionReader(p.file, 0, p.next))
	}
	if err != nil {
		return err
	}
	if free, known := room(p.file); known && free < p.entry.Size-p.next {
		return p.full(syscall.ENOSPC, free)
	}
	return nil
}

// room is how much can be written to the file system of a file, if that is known.
func room(f *os.File) (free int64, known bool) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil || st.Blocks == 0 {
		return 0, false
	}
	blocks := st.Bavail
	if os.Geteuid() == 0 {
		blocks = st.Bfree
	}
	return int64(blocks) * int64(st.Bsize), true
}

// full says how much room there would have to be.
func (p *part) full(err error, free int64) error {
	return &Error{
		Op: "writing", Path: p.l.Mark + path.Join(p.dir, p.path), Err: err,
		Remedy: fmt.Sprintf("it needs %s more, and %s are free: make room there", size(p.entry.Size-p.next), size(free)),
	}
}

// reset forgets what is there.
func (p *part) reset() error {
	p.next = 0
	p.sum.Reset()
	return p.file.Truncate(0)
}

// state is what is there.
func (p *part) state() State { return State{p.next, p.sum.Sum(nil)} }

// write writes what comes next, or, at the offset 0, begins anew.
func (p *part) write(offset int64, b []byte) error {
	if offset == 0 && p.next > 0 {
		if err := p.reset(); err != nil {
			return err
		}
	}
	if offset != p.next {
		return errBehind
	}
	if p.next+int64(len(b)) > p.entry.Size {
		return errLonger
	}
	if _, err := p.file.WriteAt(b, p.next); err != nil {
		if noRoom(err) {
			free, _ := room(p.file) // 0, if that is not known.
			return p.full(bare(err), free)
		}
		_ = p.file.Truncate(p.next) // What is there of the chunk is not in the sum; the next copy compares that.
		return err
	}
	_, _ = p.sum.Write(b) // It cannot fail.
	p.next += int64(len(b))
	return nil
}

// commit has the file get its name, if it is whole. Else it is removed.
func (p *part) commit(end End) error {
	err := p.check(end)
	if err == nil {
		err = p.file.Chmod(p.entry.perm())
	}
	if err == nil {
		err = p.root.Chtimes(p.temp, time.Time{}, p.entry.time())
	}
	if st, lstat := p.root.Lstat(p.path); err == nil && lstat == nil && st.IsDir() {
		err = syscall.EISDIR // Rename(2) says so in several ways.
	}
	if err == nil {
		err = p.root.Rename(p.temp, p.path)
	}
	if err != nil {
		p.discard()
		return err
	}
	p.close()
	return nil
}

func (p *part) check(end End) error {
	switch {
	case end.Size != p.entry.Size:
		return ErrChanged
	case p.next < end.Size:
		return errShorter
	case !bytes.Equal(end.Sum, p.sum.Sum(nil)):
		return errSpoiled
	}
	return nil
}

// keep lets go of the file, and leaves what is there for the next copy.
func (p *part) keep() {
	if p.next == 0 {
		p.discard()
		return
	}
	p.close()
}

// discard removes the file.
func (p *part) discard() {
	_ = p.root.Remove(p.temp) // Best effort: the next copy to that name finds it.
	p.close()
}

func (p *part) close() {
	_ = p.file.Close() // Nothing is promised of a machine that loses its power: see docs/remote.md.
	_ = p.root.Close() // As above.
}
