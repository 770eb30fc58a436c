package jobs

import (
	"bytes"
	"errors"
	"unicode/utf8"

	"github.com/limpet-sh/limpet/internal/rolling"
	"github.com/limpet-sh/limpet/internal/runes"
)

// LogOptions say which part of a job's output is meant. The zero value means the last
// 100 lines. Only one of Offset with Bytes, Line, Head and Tail can be used.
type LogOptions struct {
	// Offset and Bytes: so many bytes from that offset on; a negative offset counts from the
	// end. Without Bytes, 32 KiB.
	Offset *int64 `json:"offset,omitempty"`
	Bytes  int    `json:"bytes,omitempty"`

	// Line is the number of the first line, from 1; Lines says how many. Without
	// Lines, 100.
	Line  int64 `json:"line,omitempty"`
	Lines int   `json:"lines,omitempty"`

	// Head and Tail: so many of the first lines that are kept, or of the last ones.
	Head int `json:"head,omitempty"`
	Tail int `json:"tail,omitempty"`

	// Plain takes escape sequences out.
	Plain bool `json:"plain,omitempty"`
}

// The defaults of [LogOptions].
const (
	DefaultLogLines = 100
	DefaultLogBytes = 32 << 10
)

// Log is a part of a job's output.
type Log struct {
	Job Job `json:"job"`

	// Text begins at Offset, in line Line, from 1; Next is the offset behind it. With
	// Plain, there are fewer bytes than between the two.
	Text   string `json:"text"`
	Offset int64  `json:"offset"`
	Next   int64  `json:"next"`
	Line   int64  `json:"line"`

	// Binary says that Text is no UTF-8; as JSON it is not what was printed then.
	Binary bool `json:"binary,omitempty"`

	// Dropped is how many bytes of what was asked for are not kept any more.
	Dropped int64 `json:"dropped,omitempty"`
}

// Log returns a part of what a job has printed. A finished job whose log was read to
// the end is not told as completed any more.
func (r *Registry) Log(id string, opts LogOptions) (Log, error) {
	const op = "log"
	j, f, err := r.open(op, id)
	if err != nil {
		return Log{}, err
	}
	var p part
	err = f.retry(func() (enough bool, err error) {
		p, err = f.part(opts)
		return len(p.b) > 0, err
	})
	if err != nil {
		return Log{}, &Error{Op: op, ID: id, Err: err}
	}
	p.line = f.lineOf(p.at)
	log := Log{Job: r.present(j, &f), Offset: p.at, Next: p.at + int64(len(p.b)), Line: p.line, Dropped: p.dropped}
	if log.Text = string(p.b); opts.Plain {
		log.Text = string(plain(p.b))
	}
	log.Binary = !utf8.ValidString(log.Text)
	if log.Next == f.log.End {
		r.saw(j, log.Job)
	}
	return log, nil
}

// retry looks again at a log that has rolled on under who reads it, so far that there is not
// enough left of what was seen.
func (f *files) retry(read func() (enough bool, err error)) error {
	const tries = 10
	for try := 1; ; try++ {
		enough, err := read()
		if enough || err != nil || f.exit != nil || try == tries {
			return err
		}
		before := f.log.First
		if f.log, err = rolling.Look(f.logDir); err != nil || f.log.First == before {
			return err // It is as it was: there is no more.
		}
	}
}

var (
	errWays    = errors.New("bytes, lines, head and tail are different ways to say what is wanted: use one")
	errNoLines = errors.New("wants a number of lines, or of bytes, above zero")
)

// part is some of a job's output.
type part struct {
	b       []byte
	at      int64 // the offset of the first byte
	line    int64 // its line, from 1; set by Log
	dropped int64
}

func (p part) lines(stripped bool) []string {
	if stripped {
		p.b = plain(p.b)
	}
	return splitLines(p.b)
}

func (f *files) part(o LogOptions) (part, error) {
	ways := 0
	for _, used := range []bool{o.Offset != nil || o.Bytes != 0, o.Line != 0 || o.Lines != 0, o.Head != 0, o.Tail != 0} {
		if used {
			ways++
		}
	}
	switch {
	case ways > 1:
		return part{}, errWays
	case o.Bytes < 0 || o.Lines < 0 || o.Line < 0 || o.Head < 0 || o.Tail < 0:
		return part{}, errNoLines
	case o.Offset != nil || o.Bytes > 0:
		return f.bytes(o)
	case o.Line > 0 || o.Lines > 0:
		setDefault(&o.Lines, DefaultLogLines)
		return f.fromLine(max(o.Line, 1), o.Lines)
	case o.Head > 0:
		return f.fromLine(f.log.FirstLine+1, o.Head)
	}
	setDefault(&o.Tail, DefaultLogLines)
	return f.tail(o.Tail)
}

func (f *files) bytes(o LogOptions) (part, error) {
	setDefault(&o.Bytes, DefaultLogBytes)
	var off int64
	if o.Offset != nil {
		if off = *o.Offset; off < 0 {
			off = max(f.log.End+off, f.log.First)
		}
	}
	state, _ := f.state()
	b, at, err := f.piece(off, o.Bytes, state.Finished(), o.Plain)
	if err != nil {
		return part{}, err
	}
	return part{b: b, at: at, dropped: max(at-off, 0)}, nil
}

// lineOf is the number of the line that the offset is in.
func (f *files) lineOf(off int64) int64 {
	line := f.log.FirstLine + 1
	for b, at := range blocks(f.log, f.log.First) {
		b = b[:min(int64(len(b)), max(off-at, 0))]
		line += int64(bytes.Count(b, []byte{'\n'}))
		if at+int64(len(b)) >= off {
			break
		}
	}
	return line
}

// fromLine returns lines from that number on.
func (f *files) fromLine(number int64, count int) (part, error) {
	p := part{at: f.log.First, line: f.log.FirstLine + 1}
	if number < p.line {
		p.dropped = f.log.First // At least some of it.
		number = p.line
	}
	for b, at := range blocks(f.log, f.log.First) {
		if at != p.at+int64(len(p.b)) { // Some was lost between.
			p.b, p.at = nil, at
		}
		for len(b) > 0 && count > 0 {
			line, rest := cutLine(b)
			whole := line[len(line)-1] == '\n'
			if len(p.b) == 0 && p.line < number {
				p.at += int64(len(line))
				if whole {
					p.line++
				}
			} else {
				p.b = append(p.b, line...)
				if whole {
					count--
				}
			}
			b = rest
		}
		if count == 0 {
			break
		}
	}
	return f.trimmed(p), nil
}

// cutLine returns the first line of b with its end, and the rest.
func cutLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i+1], b[i+1:]
	}
	return b, nil
}

// trimmed leaves out a rune that is cut short.
func (f *files) trimmed(p part) part {
	if p.at == f.log.First && p.at > 0 {
		n := runes.BrokenStart(p.b)
		p.b, p.at = p.b[n:], p.at+int64(n)
	}
	if state, _ := f.state(); !state.Finished() {
		p.b = p.b[:runes.Whole(p.b)]
	}
	return p
}

// tail returns the last lines.
func (f *files) tail(count int) (part, error) {
	const step = 8 << 10
	for size := int64(step); ; size *= 4 {
		from := max(f.log.End-size, f.log.First)
		b, at, err := f.log.Read(from, int(f.log.End-from))
		if err != nil {
			return part{}, err
		}
		last := runes.LastLines(b, count)
		start := len(b) - len(last)
		found := start > 0
		if !found && from > f.log.First && at == from {
			continue
		}
		p := part{b: last, at: at + int64(start)}
		if !found {
			p.dropped = p.at
		}
		return f.trimmed(p), nil
	}
}

// blocks reads a log from an offset on, a piece at a time.
func blocks(log rolling.View, from int64) func(yield func(b []byte, at int64) bool) {
	const size = 64 << 10
	return func(yield func(b []byte, at int64) bool) {
		for from < log.End {
			b, at, err := log.Read(from, size)
			if err != nil || len(b) == 0 || !yield(b, at) {
				return
			}
			from = at + int64(len(b))
		}
	}
}
