package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Local reads and writes the files of the machine that runs it. Its methods are safe for concurrent use.
type Local struct {
	Dir  string // where relative paths begin; empty means the current directory
	Home string // what a ~ at the beginning of a path stands for; empty means that a ~ is a name as others are
	Mark string // comes before paths in errors

	mu    sync.Mutex
	lists []list
}

// list has the names of a directory, from which pages are made.
type list struct {
	dir   string
	names []string
}

// mostLists bounds the directories whose names are kept between two pages.
const mostLists = 4

func (l *Local) wrong(op, root, below string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Op: op, Path: l.Mark + filepath.Join(root, below), Err: bare(err)}
}

// absolute is a path as the operating system is to be asked for it.
func (l *Local) absolute(path string) (string, error) {
	if strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%.300q has a zero byte: %w", path, fs.ErrInvalid)
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok && l.Home != "" && (rest == "" || rest[0] == '/') {
		path = l.Home + rest
	}
	if l.Dir != "" && !filepath.IsAbs(path) {
		path = l.Dir + "/" + path
	}
	if path == "" {
		path = "."
	}
	return path, nil
}

// open opens a root. Close it.
func (l *Local) open(root string) (*os.Root, error) {
	dir, err := l.absolute(root)
	if err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// Stat says what a path leads to.
func (l *Local) Stat(_ context.Context, path string) (Named, error) {
	n, err := l.stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Named{}, nil
	}
	if err != nil {
		err = l.wrong("looking at", path, "", err)
	}
	return n, err
}

func (l *Local) stat(path string) (n Named, err error) {
	path, err = l.absolute(path)
	if err != nil {
		return n, err
	}
	st, err := os.Stat(path)
	if err != nil {
		return n, err
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return n, err
	}
	if path, err = filepath.Abs(path); err != nil {
		return n, err
	}
	n.There, n.Entry = true, entryOf("", st)
	n.Root, n.Path = Bytes(path), ""
	if n.Entry.Kind != Dir {
		n.Root, n.Path = Bytes(filepath.Dir(path)), Bytes(filepath.Base(path))
	}
	return n, nil
}

// List returns the entries of a directory whose names come behind another one.
func (l *Local) List(ctx context.Context, root, dir, after string) (Page, error) {
	p, err := l.list(ctx, root, dir, after)
	if err != nil {
		err = l.wrong("listing", root, dir, err)
	}
	return p, err
}

func (l *Local) list(ctx context.Context, root, dir, after string) (p Page, err error) {
	if err := checkPath(dir); err != nil {
		return p, err
	}
	top, err := l.open(root)
	if err != nil {
		return p, err
	}
	defer top.Close() // It was read.
	below, err := top.OpenRoot(orDot(dir))
	if err != nil {
		return p, err
	}
	defer below.Close() // As above.
	key := root + "\x00" + dir
	names := l.kept(key)
	if after == "" || names == nil {
		if names, err = read(ctx, below); err != nil {
			return p, err
		}
	}
	first, found := slices.BinarySearch(names, after)
	if found {
		first++
	}
	p.Entries = []Entry{} // Not null.
	bytes := 0
	for _, name := range names[first:] {
		if len(p.Entries) == mostPage || bytes >= mostPageBytes {
			p.More = true
			break
		}
		e, err := describe(below, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // It is gone since.
		}
		if err != nil {
			e = Entry{Name: Bytes(name), Kind: Other, What: bare(err).Error()}
		}
		bytes += len(name) + len(e.Target)
		p.Entries = append(p.Entries, e)
	}
	l.keep(key, names, p.More)
	return p, nil
}

// describe returns the entry of a directory that has a name.
func describe(dir *os.Root, name string) (Entry, error) {
	st, err := dir.Lstat(name)
	if err != nil {
		return Entry{}, err
	}
	e := entryOf(name, st)
	if e.Kind == Link {
		target, err := dir.Readlink(name)
		if err != nil {
			return Entry{}, err
		}
		e.Target = Bytes(target)
	}
	return e, nil
}

// read returns the names in a directory, in the order of their bytes.
func read(ctx context.Context, dir *os.Root) ([]string, error) {
	f, err := dir.OpenFile(".", os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close() // It was read.
	names := []string{}
	for {
		const some = 4096
		more, err := f.Readdirnames(some)
		names = append(names, more...)
		switch {
		case len(more) == 0 && errors.Is(err, io.EOF):
			slices.Sort(names)
			return names, nil
		case err != nil:
			return nil, err
		case len(names) > mostEntries:
			return nil, fmt.Errorf("it has more than %d entries", mostEntries)
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
	}
}

// kept returns the names of a directory that were kept; nil if none were.
func (l *Local) kept(key string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, one := range l.lists {
		if one.dir == key {
			return one.names
		}
	}
	return nil
}

// keep keeps the names of a directory while there are more pages to come.
func (l *Local) keep(key string, names []string, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lists = slices.DeleteFunc(l.lists, func(one list) bool { return one.dir == key })
	if more {
		l.lists = append(l.lists, list{key, names})
	}
	if len(l.lists) > mostLists {
		l.lists = slices.Delete(l.lists, 0, 1)
	}
}
