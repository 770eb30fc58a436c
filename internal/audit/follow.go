package audit

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/fsnotify/fsnotify"

	"github.com/limpet-sh/limpet/internal/watch"
)

// mostLine is how long a line may be that is read. What is written is shorter.
const mostLine = 1 << 20

// Follow reads the entries of a file from its beginning, and of a directory from that of its latest file, and then those that are
// added, also when another file is begun, until ctx ends or entry returns an error, which it returns. A line that is no entry is told as an error to broken.
func Follow(ctx context.Context, path string, entry func(Entry) error, broken func(error)) error {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path) // It is the file itself that changes.
	}
	if err != nil {
		return err
	}
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	f := &follower{path: path, entry: entry, broken: broken}
	dir := filepath.Dir(path)
	if st.IsDir() {
		dir, f.dir = path, true
	} else if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", path)
	}
	w, err := watch.Dir(dir)
	if err != nil {
		return fmt.Errorf("waiting for more of %s: %w", path, err)
	}
	defer w.Close() // Nothing is lost.
	defer f.close()
	for {
		if err := f.read(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-w.Events: // Of whatever file: reading to the end is little.
		case err := <-w.Errors: // Of changes that are not told.
			if err != nil && !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("waiting for more of %s: %w", path, err)
			}
		}
	}
}

// follower reads file after file.
type follower struct {
	path   string
	dir    bool
	entry  func(Entry) error
	broken func(error)

	name string // of the file that is read
	file *os.File
	rest []byte // of a line that is not whole yet
}

func (f *follower) close() {
	if f.file != nil {
		_ = f.file.Close() // It was only read.
	}
	f.file, f.rest = nil, nil
}

// read reads to the end of what there is.
func (f *follower) read(ctx context.Context) error {
	for ctx.Err() == nil {
		// First, as a file that is full gets no more lines when another one has its name.
		next, err := f.next()
		if err != nil {
			return err
		}
		if f.file != nil {
			if err := f.lines(ctx); err != nil {
				return err
			}
		}
		if next == "" {
			return nil
		}
		f.close()
		file, err := openRegular(next)
		if errors.Is(err, fs.ErrNotExist) { // It was renamed just now: another one comes.
			return nil
		}
		if f.name = next; err != nil {
			f.broken(err)
			if !f.dir {
				return nil // It is something else now, until it changes again.
			}
			continue
		}
		f.file = file
	}
	return nil
}

// openRegular opens a file, and nothing else: that could wait for ever.
func openRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if st, err := file.Stat(); err != nil || !st.Mode().IsRegular() {
		_ = file.Close() // Nothing was read.
		return nil, fmt.Errorf("%s is no file", path)
	}
	return file, nil
}

// next is the file that is to be read behind this one; empty if there is none.
func (f *follower) next() (string, error) {
	if f.file != nil {
		is, err := f.file.Stat()
		if err != nil {
			return "", err
		}
		there, err := os.Stat(f.name)
		if err == nil && !os.SameFile(is, there) {
			return f.name, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	if !f.dir {
		if f.file == nil {
			return f.path, nil
		}
		return "", nil
	}
	entries, err := os.ReadDir(f.path) // It sorts them.
	if err != nil {
		return "", err
	}
	var names []string
	for _, one := range entries {
		if filepath.Ext(one.Name()) == ".jsonl" {
			names = append(names, filepath.Join(f.path, one.Name()))
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	if f.name == "" {
		return names[len(names)-1], nil
	}
	i, found := slices.BinarySearch(names, f.name)
	if found {
		i++
	}
	if i < len(names) {
		return names[i], nil
	}
	return "", nil
}

// lines reads the whole lines that there are.
func (f *follower) lines(ctx context.Context) error {
	if at, err := f.file.Seek(0, io.SeekCurrent); err == nil {
		if st, err := f.file.Stat(); err == nil && st.Size() < at { // Somebody has emptied it.
			f.rest = nil
			if _, err := f.file.Seek(0, io.SeekStart); err != nil {
				return err
			}
		}
	}
	r := bufio.NewReader(f.file)
	for ctx.Err() == nil {
		part, err := r.ReadSlice('\n')
		if f.rest = append(f.rest, part...); len(f.rest) > mostLine {
			f.broken(fmt.Errorf("%s: a line is longer than %d bytes", f.name, mostLine))
			f.rest = f.rest[:0]
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		line := f.rest
		f.rest = f.rest[:0]
		if len(line) <= 1 {
			continue
		}
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil || e.Kind == "" || e.Time.IsZero() {
			f.broken(fmt.Errorf("%s: a line is no entry", f.name))
			continue
		}
		if err := f.entry(e); err != nil {
			return err
		}
	}
	return nil
}
