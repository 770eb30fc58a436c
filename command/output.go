package command

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// Output is what a command wrote to one stream: all of it, or its head and its
// tail with the number of bytes that were left out between them. The cuts do
// not split a UTF-8 sequence. The zero value is an empty stream.
type Output struct {
	// Head is the beginning. When nothing was left out it is everything and
	// Tail is empty.
	Head, Tail []byte

	// Total counts all bytes that the command wrote.
	Total int64

	// Path names a file with more of the stream than Head and Tail, at true
	// offsets, when the shell was asked to keep one; else it is empty. The
	// file lives until the shell is closed or enough newer ones were kept.
	Path string
}

// Omitted is the number of bytes between Head and Tail that are not here.
func (o Output) Omitted() int64 { return o.Total - int64(len(o.Head)+len(o.Tail)) }

// Bytes returns the head, a line that says how much was left out if anything
// was, and the tail. The caller may change it only if it changes nobody
// else's view: without a Tail it is Head itself.
func (o Output) Bytes() []byte {
	if o.Omitted() <= 0 && len(o.Tail) == 0 {
		return o.Head
	}
	mark := ""
	if n := o.Omitted(); n > 0 {
		mark = fmt.Sprintf("\n[limpet: %d bytes omitted]\n", n)
	}
	all := make([]byte, 0, len(o.Head)+len(mark)+len(o.Tail))
	all = append(all, o.Head...)
	all = append(all, mark...)
	return append(all, o.Tail...)
}

// String is Bytes as a string.
func (o Output) String() string { return string(o.Bytes()) }

// Binary reports whether what was kept is no text: it holds a NUL byte or is
// not UTF-8.
func (o Output) Binary() bool {
	for _, part := range [][]byte{o.Head, o.Tail} {
		if bytes.IndexByte(part, 0) >= 0 || !utf8.Valid(part) {
			return true
		}
	}
	return false
}

// ErrOmitted is returned where bytes are asked for that were not kept.
var ErrOmitted = errors.New("command: that part of the output was not kept; raise the output limit, or keep output in files")

// ReadAt reads from offset off of the stream as the command wrote it, from
// Head and Tail and from the file at Path if there is one, so that a long
// output can be paged. It returns [ErrOmitted] at a gap, behind which
// [Output.Kept] leads, and [io.EOF] at the end, as [io.ReaderAt] says.
func (o Output) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("command: negative offset %d", off)
	}
	n := 0
	for n < len(p) {
		at := off + int64(n)
		tailAt := o.Total - int64(len(o.Tail))
		var m int
		switch {
		case at >= o.Total:
			return n, io.EOF
		case at < int64(len(o.Head)):
			m = copy(p[n:], o.Head[at:])
		case at >= tailAt:
			m = copy(p[n:], o.Tail[at-tailAt:])
		default:
			var err error
			if m, err = o.readFile(p[n:min(int64(len(p)), int64(n)+tailAt-at)], at); err != nil {
				return n + m, err
			}
		}
		n += m
	}
	return n, nil
}

func (o Output) readFile(p []byte, off int64) (int, error) {
	if o.Path == "" {
		return 0, ErrOmitted
	}
	f, err := os.Open(o.Path)
	if err != nil {
		return 0, fmt.Errorf("%w (%w)", ErrOmitted, err)
	}
	defer f.Close() // Read only: nothing to lose.
	n, err := readKept(f, p, off)
	switch {
	case n > 0:
		return n, nil
	case err != nil && err != io.EOF: // The end of the file is not that of the stream.
		return 0, err
	}
	return 0, ErrOmitted
}

// Kept returns the first stretch that is kept of what begins at off: ReadAt has the
// bytes from the one offset up to the other. It steps over a gap, so that a reader
// finds what is kept behind it. Where nothing more is kept both are Total. A file at
// Path may go at any time, and what was in it.
func (o Output) Kept(off int64) (from, to int64) {
	for _, p := range o.parts() {
		if end := p[1]; off < end {
			return max(off, p[0]), end
		}
	}
	return o.Total, o.Total
}

// parts are the stretches that are kept, with no two that touch.
func (o Output) parts() [][2]int64 {
	if o.Omitted() <= 0 {
		return [][2]int64{{0, o.Total}}
	}
	headEnd, tailAt := int64(len(o.Head)), o.Total-int64(len(o.Tail))
	all := append([][2]int64{{0, headEnd}}, o.keptRanges(headEnd, tailAt)...)
	var parts [][2]int64
	for _, p := range append(all, [2]int64{tailAt, o.Total}) {
		if last := len(parts) - 1; last >= 0 && parts[last][1] == p[0] {
			parts[last][1] = p[1]
			continue
		}
		parts = append(parts, p)
	}
	return parts
}
