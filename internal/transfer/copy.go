package transfer

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"syscall"
)

// Source is where files are read.
type Source interface {
	// Stat says what a path leads to.
	Stat(ctx context.Context, path string) (Named, error)

	// List returns the entries of a directory, below a root, whose names come behind another one.
	List(ctx context.Context, root, dir, after string) (Page, error)

	// Read reads a file: see [Local.Read].
	Read(ctx context.Context, root, path string, e Entry, from State, to func(offset int64, b []byte) error) (End, error)
}

// Sink is where files are written.
type Sink interface {
	// Stat says what a path leads to.
	Stat(ctx context.Context, path string) (Named, error)

	// Prepare makes directories and links: see [Local.Prepare].
	Prepare(ctx context.Context, root, dir string, entries []Entry) ([]Prepared, error)

	// Open begins to write a file: see [Local.Open].
	Open(ctx context.Context, root, path string, e Entry, resume bool) (Writer, State, error)

	// Finish sets mode and time of a directory.
	Finish(ctx context.Context, root, dir string, e Entry) error
}

var (
	_ Source = (*Local)(nil)
	_ Source = (*Remote)(nil)
	_ Sink   = (*Local)(nil)
	_ Sink   = (*Remote)(nil)
)

// Options are those of a copy. The zero value of each, and nil, is a good default.
type Options struct {
	// Note is called for each entry that is not copied, by one goroutine at a time. Skipped says that it is of a kind that is never
	// copied.
	Note func(path, why string, skipped bool)

	// Lost reports whether an error is that of a connection, which is worth another try.
	Lost func(err error) bool

	// FromMark and ToMark come before paths of the source and the destination in errors.
	FromMark, ToMark string

	// Files is how many files are copied at a time. 0 means 8.
	Files int
}

// Result is what was copied.
type Result struct {
	Files   int64 // that were written
	Same    int64 // files that were there already
	Dirs    int64
	Links   int64
	Bytes   int64 // that went over
	Skipped int64 // entries of a kind that is never copied
	Failed  int64 // entries that could not be copied

	Size int64  // of the file, if it is one that is copied, and no directory
	Now  string // a file that is being copied
}

// Copier copies one file or directory. Its methods are safe for concurrent use; Copy is called once.
type Copier struct {
	from Source
	to   Sink
	opts Options

	mu     sync.Mutex
	result Result
	stop   context.CancelCauseFunc
}

// New returns a copier, which does nothing before Copy.
func New(from Source, to Sink, opts *Options) *Copier {
	c := &Copier{from: from, to: to}
	if opts != nil {
		c.opts = *opts
	}
	const files = 8
	if c.opts.Files == 0 {
		c.opts.Files = files
	}
	if c.opts.Note == nil {
		c.opts.Note = func(string, string, bool) {}
	}
	if c.opts.Lost == nil {
		c.opts.Lost = func(error) bool { return false }
	}
	return c
}

// Result is what was copied so far.
func (c *Copier) Result() Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.result
}

func (c *Copier) count(add func(*Result)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.result)
}

// note counts an entry that is not copied, and tells it.
func (c *Copier) note(path, why string, skipped bool) {
	const most = 1000 // Another machine may say anything.
	if len(why) > most {
		why = strings.ToValidUTF8(why[:most], "") + "..."
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if skipped {
		c.result.Skipped++
	} else {
		c.result.Failed++
	}
	c.opts.Note(path, why, skipped)
}

// Copy copies what a path leads to: into a directory that there is, under its name, or else to the path itself. A path that ends in
// a dot, as "dir/.", stands for what is in the directory. The error is ErrPartly if something was left out, which Note was
// told.
func (c *Copier) Copy(ctx context.Context, source, dest string) error {
	ctx, c.stop = context.WithCancelCause(ctx)
	defer c.stop(nil)
	from, err := c.from.Stat(ctx, source)
	if err != nil {
		return err
	}
	if !from.There {
		return &Error{Op: "reading", Path: c.opts.FromMark + source, Err: syscall.ENOENT}
	}
	to, err := c.to.Stat(ctx, dest)
	if err != nil {
		return err
	}
	root, name, err := place(source, dest, from, to)
	if e, ok := errors.AsType[*Error](err); ok {
		e.Path = c.opts.ToMark + e.Path
	}
	if err != nil {
		return err
	}
	e := from.Entry
	e.Name = Bytes(name)
	if e.Kind != Dir {
		c.count(func(r *Result) { r.Size = e.Size })
	}
	err = c.tree(ctx, from, root, e)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if r := c.Result(); err == nil && r.Failed+r.Skipped > 0 {
		err = ErrPartly
	}
	return err
}

// place is where something goes: a directory that there is, and the name in it, which is empty if the directory itself is meant.
func place(source, dest string, from, to Named) (root, name string, err error) {
	base := path.Base(path.Clean(source))
	if source == "" || strings.HasSuffix(source, "/.") || base == "/" || base == ".." || base == "~" {
		base = "." // What is in it.
	}
	isDir := from.Entry.Kind == Dir
	switch {
	case to.There && to.Entry.Kind == Dir && isDir && base == ".":
		return dest, "", nil
	case to.There && to.Entry.Kind == Dir:
		return dest, base, nil
	case to.There && isDir:
		return "", "", &Error{Op: "writing", Path: dest, Err: syscall.ENOTDIR, Remedy: "a directory cannot take the place of a file"}
	case to.There && to.Entry.Kind != File:
		return "", "", &Error{Op: "writing", Path: dest, Err: fmt.Errorf("it is %s", to.Entry.What)}
	case strings.HasSuffix(dest, "/") && !isDir:
		return "", "", &Error{Op: "writing", Path: dest, Err: syscall.ENOENT, Remedy: "make the directory first"}
	}
	root, name = path.Split(strings.TrimRight(dest, "/"))
	if !isName(name) {
		return "", "", &Error{Op: "writing", Path: dest, Err: errors.New("that is no name for it")}
	}
	return root, name, nil
}
