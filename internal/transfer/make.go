package transfer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/private"
)

// Prepare makes the directories and links of some entries, below a directory, and says of files whether they are there already. What
// cannot be done is in the answer: the error is that nothing could.
func (l *Local) Prepare(ctx context.Context, root, dir string, entries []Entry) ([]Prepared, error) {
	if err := checkPath(dir); err != nil {
		return nil, l.wrong("writing", root, dir, err)
	}
	top, err := l.open(root)
	if err != nil {
		return nil, l.wrong("writing", root, dir, err)
	}
	defer top.Close() // Nothing is written by it.
	all := make([]Prepared, 0, len(entries))
	for _, e := range entries {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		err := e.check()
		below := in(dir, string(e.Name))
		if err == nil {
			err = checkPath(below)
		}
		var p Prepared
		if err == nil {
			p, err = prepare(top, below, e)
		}
		if err != nil {
			p = Prepared{Why: said(l.wrong("writing", root, below, err)), Full: noRoom(err)}
		}
		all = append(all, p)
	}
	return all, nil
}

var (
	errIsDir  = errors.New("there is a directory of that name")
	errNotDir = errors.New("there is something of that name that is no directory")
)

func prepare(root *os.Root, below string, e Entry) (Prepared, error) {
	st, err := root.Lstat(below)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Prepared{}, err
	}
	switch e.Kind {
	case Dir:
		return Prepared{Same: there}, makeDir(root, below, st)
	case Link:
		if there && st.IsDir() {
			return Prepared{}, errIsDir
		}
		if there && st.Mode()&fs.ModeSymlink != 0 {
			if target, err := root.Readlink(below); err == nil && target == string(e.Target) {
				return Prepared{Same: true}, nil
			}
		}
		return Prepared{}, makeLink(root, below, string(e.Target))
	}
	if there && st.IsDir() {
		return Prepared{}, errIsDir
	}
	if there && isThere(st, e) {
		if st.Mode().Perm() != e.perm() {
			err = root.Chmod(below, e.perm())
		}
		return Prepared{Same: err == nil}, nil // Else it is written anew.
	}
	_, err = root.Lstat(partOf(below))
	return Prepared{Part: err == nil}, nil
}

// isThere reports whether a file is the one of an entry: by size and time, as rsync(1) does.
func isThere(st fs.FileInfo, e Entry) bool {
	return st.Mode().IsRegular() && st.Size() == e.Size && timeOf(st) == e.Time
}

// makeDir makes a directory, in which this user can write, unless it is there.
func makeDir(root *os.Root, below string, st fs.FileInfo) error {
	const ours = 0o700
	switch {
	case st == nil:
		return private.MkdirIn(root, below)
	case !st.IsDir():
		return errNotDir
	case st.Mode().Perm()&ours != ours:
		_ = root.Chmod(below, st.Mode().Perm()|ours) // If that fails, so does writing there, which is told.
	}
	return nil
}

// makeLink makes a link in place of whatever has its name.
func makeLink(root *os.Root, below, target string) error {
	temp := partOf(below)
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.Symlink(target, temp); err != nil {
		return err
	}
	if err := root.Rename(temp, below); err != nil {
		_ = root.Remove(temp) // It was made just now.
		return err
	}
	return nil
}

// Finish sets mode and time of a directory, when all that is in it is written.
func (l *Local) Finish(_ context.Context, root, dir string, e Entry) error {
	err := checkPath(dir)
	if err == nil {
		err = l.finish(root, dir, e)
	}
	if err != nil {
		err = l.wrong("setting mode and time of", root, dir, err)
	}
	return err
}

func (l *Local) finish(root, dir string, e Entry) error {
	top, err := l.open(root)
	if err != nil {
		return err
	}
	defer top.Close() // Nothing is written by it.
	st, err := top.Lstat(dir)
	if err == nil && !st.IsDir() {
		err = syscall.ENOTDIR
	}
	if err != nil {
		return err
	}
	f, err := openSame(top, dir, os.O_RDONLY|syscall.O_DIRECTORY, st)
	if f == nil && err == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	defer f.Close() // As above.
	if err := top.Chtimes(dir, time.Time{}, e.time()); err != nil {
		return err
	}
	return f.Chmod(e.perm())
}

// Writer writes one file. Its methods are for one goroutine. Exactly one of Commit, Keep and Discard is the last.
type Writer interface {
	// Write writes the chunk that comes next; one at the offset 0 begins anew. B is the caller's when it returns.
	Write(ctx context.Context, offset int64, b []byte) error

	// Commit has the file get its name, if it has that size and sum. Else it is removed.
	Commit(ctx context.Context, end End) error

	// Keep leaves what is written for the next copy, Discard removes it.
	Keep()
	Discard()
}

// Open begins to write a file, which the entry describes. With resume, what an earlier copy has left is kept, and the state says
// what that is.
func (l *Local) Open(ctx context.Context, root, below string, e Entry, resume bool) (Writer, State, error) {
	p, err := l.openPart(ctx, root, below, e)
	if err == nil && !resume {
		err = p.reset()
	}
	if err != nil {
		return nil, State{}, l.wrong("writing", root, below, err)
	}
	return &localWriter{p, path.Join(root, below)}, p.state(), nil
}

type localWriter struct {
	p    *part
	said string
}

func (w *localWriter) wrong(err error) error {
	if err == nil {
		return nil
	}
	return w.p.l.wrong("writing", w.said, "", err)
}

func (w *localWriter) Write(_ context.Context, offset int64, b []byte) error {
	return w.wrong(w.p.write(offset, b))
}
func (w *localWriter) Commit(_ context.Context, end End) error { return w.wrong(w.p.commit(end)) }
func (w *localWriter) Keep()                                   { w.p.keep() }
func (w *localWriter) Discard()                                { w.p.discard() }
