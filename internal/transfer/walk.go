package transfer

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"sync/atomic"
)

// job is a file to be copied.
type job struct {
	dir   *dir
	entry Entry
	part  bool   // a part of it is there from an earlier copy
	from  string // where it is below the source's root, if not in dir under its name
}

// dir is a directory that is being copied.
type dir struct {
	up    *dir   // nil for the first
	from  string // below the source's root
	to    string // below the root of the destination
	entry Entry

	// left counts what is to be done before its time can be set: listing it, its files, and its directories.
	left atomic.Int64
}

func (d *dir) fromOf(e Entry) string { return in(d.from, string(e.Name)) }
func (d *dir) toOf(e Entry) string   { return in(d.to, string(e.Name)) }

// walk is a copy that is under way.
type walk struct {
	*Copier
	from, to string // the roots
	jobs     chan job
}

// tree copies an entry, to its name below a root. Directories are listed one after the other, and files copied beside that.
func (c *Copier) tree(ctx context.Context, from Named, root string, e Entry) error {
	w := &walk{Copier: c, from: string(from.Root), to: root, jobs: make(chan job)}
	var workers sync.WaitGroup
	for range c.opts.Files {
		workers.Go(func() {
			for j := range w.jobs {
				w.file(ctx, j)
				w.release(ctx, j.dir)
			}
		})
	}
	err := w.top(ctx, from, e)
	close(w.jobs)
	workers.Wait()
	return err
}

// top copies the entry that was named. The directory that it goes into stays as it is.
func (w *walk) top(ctx context.Context, from Named, e Entry) error {
	above := &dir{}
	above.left.Store(2) // It is not finished.
	if e.Name == "" {
		return w.list(ctx, &dir{up: above}, 0)
	}
	subs, err := w.entries(ctx, above, []Entry{e}, string(from.Path))
	if err != nil {
		return err
	}
	for _, sub := range subs {
		sub.from = "" // A directory is the source's root.
		if err := w.list(ctx, sub, 1); err != nil {
			return err
		}
	}
	return nil
}

// release counts that something of a directory is done, and finishes it with the last.
func (w *walk) release(ctx context.Context, d *dir) {
	for ; d != nil && d.left.Add(-1) == 0; d = d.up {
		if d.to == "" || ctx.Err() != nil {
			continue
		}
		if err := w.Copier.to.Finish(ctx, w.to, d.to, d.entry); err != nil {
			w.failed(ctx, d.to, err)
		}
	}
}

// failed notes that an entry was not copied, and stops if that is so for all that follow, too.
func (w *walk) failed(ctx context.Context, path string, err error) {
	switch {
	case ctx.Err() != nil:
	case noRoom(err), w.opts.Lost(err):
		w.stop(err)
	default:
		w.note(path, said(err), false)
	}
}

// list copies what is in a directory.
func (w *walk) list(ctx context.Context, d *dir, depth int) error {
	d.left.Add(1)
	defer w.release(ctx, d)
	after := ""
	for entries := 0; ; {
		page, err := w.Copier.from.List(ctx, w.from, d.from, after)
		if err == nil {
			err = page.check(after)
		}
		if entries += len(page.Entries); err == nil && entries > mostEntries {
			err = fmt.Errorf("%w: it has more than %d entries", errListing, mostEntries)
		}
		if errors.Is(err, errListing) {
			return &Error{Op: "listing", Path: w.opts.FromMark + path.Join(w.from, d.from), Err: err}
		}
		if err != nil {
			w.failed(ctx, d.to, err)
			return context.Cause(ctx)
		}
		subs, err := w.entries(ctx, d, page.Entries, "")
		if err != nil {
			return err
		}
		for _, sub := range subs {
			if depth == mostDepth {
				w.note(sub.to, fmt.Sprintf("it is in more than %d directories", mostDepth), false)
				w.release(ctx, d)
				continue
			}
			if err := w.list(ctx, sub, depth+1); err != nil {
				return err
			}
		}
		if !page.More {
			return nil
		}
		after = string(page.Entries[len(page.Entries)-1].Name)
	}
}

// entries copies some of a directory, and returns the directories among them, which are made, and to be listed. If path is not empty it is
// that of the only entry.
func (w *walk) entries(ctx context.Context, d *dir, all []Entry, from string) (subs []*dir, err error) {
	var some []Entry
	for _, e := range all {
		switch e.Kind {
		case File, Dir, Link:
			some = append(some, e)
		default:
			w.note(d.toOf(e), fmt.Sprintf("it is not copied: %s", e.What), true)
		}
	}
	if len(some) == 0 {
		return nil, nil
	}
	prepared, err := w.Copier.to.Prepare(ctx, w.to, d.to, some)
	if err != nil {
		return nil, err
	}
	for i, p := range prepared {
		e := some[i]
		switch {
		case p.Why != "":
			w.note(d.toOf(e), p.Why, false)
			if p.Full {
				return nil, &FarError{errors.New(p.Why)}
			}
		case e.Kind == Dir:
			d.left.Add(1)
			sub := &dir{up: d, from: d.fromOf(e), to: d.toOf(e), entry: e}
			subs = append(subs, sub)
			w.count(func(r *Result) { r.Dirs++ })
		case e.Kind == Link:
			w.count(func(r *Result) { r.Links++ })
		case p.Same:
			w.count(func(r *Result) { r.Same++ })
		default:
			d.left.Add(1)
			select {
			case w.jobs <- job{d, e, p.Part, from}:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}
	return subs, nil
}
