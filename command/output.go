package command

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
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
// output can be paged. It returns [ErrOmitted] at a gap and [io.EOF] at the
// end, as [io.ReaderAt] says.
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
	if n > 0 || err != nil {
		return n, err
	}
	return 0, ErrOmitted
}

// Match is a line that [Output.Search] found.
type Match struct {
	Offset int64  // of the line's first byte in the stream
	Line   string // without its newline
}

// maxSearchLine bounds the memory of a search in output without newlines.
const maxSearchLine = 1 << 20

// Search returns the first max lines that match re, or all of them if max is
// 0 or less. Lines over 1 MiB are searched in pieces. What was not kept is
// passed over.
func (o Output) Search(re *regexp.Regexp, max int) ([]Match, error) {
	var found []Match
	for _, part := range o.parts() {
		lines := bufio.NewReaderSize(part, maxSearchLine)
		for at := part.start; ; {
			line, err := lines.ReadSlice('\n')
			if len(line) > 0 {
				text := bytes.TrimSuffix(line, []byte("\n"))
				if re.Match(text) {
					found = append(found, Match{Offset: at, Line: string(text)})
					if max > 0 && len(found) == max {
						return found, nil
					}
				}
				at += int64(len(line))
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil {
				if err == io.EOF || errors.Is(err, ErrOmitted) {
					break
				}
				return found, err
			}
		}
	}
	return found, nil
}

// part is a stretch of the stream without a gap.
type part struct {
	*io.SectionReader
	start int64
}

func (o Output) parts() []part {
	section := func(from, to int64) part {
		return part{io.NewSectionReader(o, from, to-from), from}
	}
	if o.Omitted() <= 0 {
		return []part{section(0, o.Total)}
	}
	tailAt := o.Total - int64(len(o.Tail))
	parts := []part{section(0, int64(len(o.Head)))}
	for _, kept := range o.keptRanges(int64(len(o.Head)), tailAt) {
		if last := &parts[len(parts)-1]; last.start+last.Size() == kept[0] {
			*last = section(last.start, kept[1])
			continue
		}
		parts = append(parts, section(kept[0], kept[1]))
	}
	if last := &parts[len(parts)-1]; last.start+last.Size() == tailAt {
		*last = section(last.start, o.Total)
		return parts
	}
	return append(parts, section(tailAt, o.Total))
}
