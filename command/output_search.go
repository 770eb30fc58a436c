package command

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
)

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
	_, err := o.Scan(0, func(offset int64, line []byte) bool {
		if re.Match(line) {
			found = append(found, Match{Offset: offset, Line: string(line)})
		}
		return max <= 0 || len(found) < max
	})
	return found, err
}

// Scan calls each with the lines of the stream from an offset on, without
// their newlines, until it returns false. Lines over 1 MiB come in pieces, and
// so does one that a gap is in. A line is each's only during the call. What
// was not kept is passed over: omitted is how much of it there was on the way.
func (o Output) Scan(from int64, each func(offset int64, line []byte) bool) (omitted int64, err error) {
	for at := max(from, 0); at < o.Total; {
		begin, end := o.Kept(at)
		omitted += begin - at
		at = begin
		for lines := bufio.NewReaderSize(io.NewSectionReader(o, begin, end-begin), maxSearchLine); at < end; {
			line, err := lines.ReadSlice('\n')
			if len(line) > 0 && !each(at, bytes.TrimSuffix(line, []byte("\n"))) {
				return omitted, nil
			}
			at += int64(len(line))
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) && at < end {
				if !errors.Is(err, ErrOmitted) {
					return omitted, err
				}
				o.Path = "" // The file went just now: what is in memory counts.
				break
			}
		}
	}
	return omitted, nil
}
