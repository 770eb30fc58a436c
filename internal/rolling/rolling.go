// Package rolling is a log that forgets its beginning. One process appends to it,
// any number of processes read it meanwhile, by offsets that count from the first
// byte that was ever written.
//
// A log is a directory of segments, each named by the offset and the number of the
// line with which it begins, so that "cat DIR/*" prints what is there, in order. Segments
// are only ever appended to and removed: a reader needs no lock, and sees
// each byte in its place or not at all.
package rolling

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// segment is a file of the log.
type segment struct {
	start int64 // the offset of its first byte
	line  int64 // how many newlines were written before it
}

// name sorts as the offset does.
func (s segment) name() string { return fmt.Sprintf("%019d-%d", s.start, s.line) }

func parseName(name string) (segment, bool) {
	start, line, ok := strings.Cut(name, "-")
	const width = 19
	if !ok || len(start) != width {
		return segment{}, false
	}
	s := segment{}
	var err1, err2 error
	s.start, err1 = strconv.ParseInt(start, 10, 64)
	s.line, err2 = strconv.ParseInt(line, 10, 64)
	return s, err1 == nil && err2 == nil && s.start >= 0 && s.line >= 0
}

// segments lists the segments of a log, the oldest first.
func segments(dir string) ([]segment, error) {
	entries, err := os.ReadDir(dir) // Sorted by name.
	if err != nil {
		return nil, err
	}
	var list []segment
	for _, entry := range entries {
		if s, ok := parseName(entry.Name()); ok {
			list = append(list, s)
		}
	}
	return list, nil
}

// View is what a log holds at one moment.
type View struct {
	First     int64     // the offset of the first byte that is kept
	FirstLine int64     // how many lines ended before it
	End       int64     // the offset behind the last byte
	Changed   time.Time // when it was last written to; zero if never

	dir      string
	segments []segment
}

// Look returns what the log in dir holds now. A log that was never written to is
// empty, also when there is no such directory.
func Look(dir string) (View, error) {
	const tries = 100 // A writer would have to remove all that is listed as often.
	for try := 0; ; try++ {
		v, err := look(dir)
		if !errors.Is(err, fs.ErrNotExist) || try == tries {
			return v, err
		}
	}
}

func look(dir string) (View, error) {
	list, err := segments(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return View{}, nil
	}
	if err != nil || len(list) == 0 {
		return View{dir: dir}, err
	}
	last := list[len(list)-1]
	st, err := os.Stat(filepath.Join(dir, last.name()))
	if err != nil {
		return View{}, err // It may have been removed just now: look again.
	}
	return View{
		First: list[0].start, FirstLine: list[0].line, End: last.start + st.Size(), Changed: st.ModTime(),
		dir: dir, segments: list,
	}, nil
}

// Read returns up to most bytes from offset off on, and the offset of the first of
// them. That is larger than off where what is between was dropped, also since
// Look. There is nothing at the end of the View, and less than most before it only
// where bytes behind them are lost.
func (v View) Read(off int64, most int) (b []byte, at int64, err error) {
	at = max(min(off, v.End), v.First)
	left := func() int { return int(min(int64(most), v.End-at)) }
	for _, s := range v.from(at) {
		if len(b) > 0 && at+int64(len(b)) != s.start {
			break // Some were lost here: a full disk.
		}
		if len(b) == 0 {
			at = max(at, s.start)
		}
		if len(b) >= left() {
			break
		}
		if b == nil {
			b = make([]byte, 0, left())
		}
		n, err := readSegment(filepath.Join(v.dir, s.name()), at+int64(len(b))-s.start, b[len(b):left()])
		b = b[:len(b)+n]
		switch {
		case errors.Is(err, fs.ErrNotExist) && len(b) == 0:
			continue // It was dropped since the Look.
		case errors.Is(err, fs.ErrNotExist):
			return b, at, nil
		case err != nil:
			return b, at, err
		}
	}
	if len(b) == 0 && most > 0 {
		at = v.End
	}
	return b, at, nil
}

// from returns the segments from the one on that has the offset.
func (v View) from(off int64) []segment {
	i, _ := slices.BinarySearchFunc(v.segments, off, func(s segment, off int64) int { return cmp.Compare(s.start, off+1) })
	return v.segments[max(i-1, 0):]
}

// readSegment fills b from the offset on, or as far as the file goes.
func readSegment(path string, off int64, b []byte) (int, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // It waits for nobody, whatever somebody has put there.
	if err != nil {
		return 0, err
	}
	defer f.Close() // Read only.
	n, err := f.ReadAt(b, off)
	if errors.Is(err, io.EOF) {
		err = nil // The next segment has the rest.
	}
	return n, err
}
