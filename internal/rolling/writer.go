package rolling

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/limpet-sh/limpet/internal/private"
)

// Writer appends to a log. It is used by one goroutine at a time, and there must be
// only one for a log.
type Writer struct {
	dir  string
	keep int64 // how many of the last bytes are kept at least
	size int64 // of a segment, as soon as it has as much
	f    *os.File
	kept []segment // the last one is that of f

	end   int64 // the offset behind the last byte
	lines int64 // that ended before it
	lost  int64 // bytes for which there was no room
}

// leastSegment keeps a log of a few bytes from being all file names.
const leastSegment = 4 << 10

// NewWriter makes the log in dir, which must not exist. It keeps at least the last
// keep bytes, and takes up to half as much again, and a segment of 4 KiB, of disk.
func NewWriter(dir string, keep int64) (*Writer, error) {
	if err := private.Mkdir(dir); err != nil {
		return nil, err
	}
	return &Writer{dir: dir, keep: max(keep, 1), size: max(keep/2, leastSegment)}, nil
}

// Write implements io.Writer. What there is no room for is lost, and counted: the
// offsets go on behind it. The error says so, and may be ignored.
func (w *Writer) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		part, werr := w.part(p)
		if n := len(part); n > 0 {
			written += n
			p = p[n:]
		}
		if werr != nil {
			w.skip(p)
			return written, werr
		}
	}
	return written, nil
}

// part writes as much as fits into the present segment and returns that.
func (w *Writer) part(p []byte) ([]byte, error) {
	if err := w.room(); err != nil {
		return nil, err
	}
	last := w.kept[len(w.kept)-1]
	if left := last.start + w.size - w.end; int64(len(p)) > left {
		p = p[:left]
	}
	n, err := w.f.Write(p)
	if errors.Is(err, syscall.ENOSPC) && n == 0 && len(w.kept) > 1 {
		// What is old makes room for what is new.
		w.drop()
		n, err = w.f.Write(p)
	}
	w.end += int64(n)
	w.lines += int64(bytes.Count(p[:n], newline))
	for len(w.kept) > 1 && w.end-w.kept[1].start >= w.keep {
		w.drop()
	}
	return p[:n], err
}

var newline = []byte{'\n'}

// skip counts what is lost. What comes next gets a segment of its own.
func (w *Writer) skip(p []byte) {
	w.end += int64(len(p))
	w.lines += int64(bytes.Count(p, newline))
	w.lost += int64(len(p))
	w.seal()
}

func (w *Writer) seal() {
	if w.f != nil {
		_ = w.f.Close() // Each write has said how it went.
		w.f = nil
	}
}

// room makes sure that the present segment has some.
func (w *Writer) room() error {
	if w.f != nil && w.end < w.kept[len(w.kept)-1].start+w.size {
		return nil
	}
	w.seal()
	next := segment{start: w.end, line: w.lines}
	f, err := private.OpenFile(filepath.Join(w.dir, next.name()), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND)
	if err != nil {
		return fmt.Errorf("rolling: %w", err)
	}
	w.f, w.kept = f, append(w.kept, next)
	return nil
}

// drop forgets the oldest segment.
func (w *Writer) drop() {
	_ = os.Remove(filepath.Join(w.dir, w.kept[0].name())) // It may be gone: that is what is wanted.
	w.kept = w.kept[1:]
}

// End returns the offset behind the last byte that was written or lost.
func (w *Writer) End() int64 { return w.end }

// Lost returns for how many bytes there was no room.
func (w *Writer) Lost() int64 { return w.lost }

// Close ends the writing. The log stays.
func (w *Writer) Close() error {
	w.seal()
	return nil
}
