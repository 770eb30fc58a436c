package mcpserver

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/runes"
)

// readIn is what read_output is asked.
type readIn struct {
	ResultID   string `json:"result_id" jsonschema:"That of a run_command, as r7-x3kq."`
	Stream     string `json:"stream,omitempty" jsonschema:"Default: stdout." enum:"stdout,stderr"`
	Offset     *int64 `json:"offset,omitempty" jsonschema:"The first byte to read, from 0; negative counts from the end."`
	Bytes      int    `json:"bytes,omitempty" jsonschema:"How many bytes to read from there. The default is in the description." min:"1" max:"32768"`
	TailLines  int    `json:"tail_lines,omitempty" jsonschema:"Or: read so many of the last lines." min:"1" max:"10000"`
	Pattern    string `json:"pattern,omitempty" jsonschema:"Or: find the lines that match this regular expression (RE2)."`
	MaxMatches int    `json:"max_matches,omitempty" jsonschema:"With pattern: at most so many. Default: 50." min:"1" max:"1000"`
	FromOffset int64  `json:"from_offset,omitempty" jsonschema:"With pattern: search from this byte on." min:"0"`
	MaxOutput  int    `json:"max_output_bytes,omitempty" jsonschema:"With tail_lines or pattern: how much of the lines, or matches, to return at most. The default is in the description." min:"256" max:"32768"`
	Raw        bool   `json:"raw,omitempty" jsonschema:"Keep escape sequences and carriage returns; a pattern then meets them."`
}

// readOut is what read_output returns.
type readOut struct {
	ResultID   string  `json:"result_id"`
	Stream     string  `json:"stream"`
	Text       string  `json:"text"`
	Offset     int64   `json:"offset" jsonschema:"Of the first byte of text in the stream."`
	NextOffset int64   `json:"next_offset" jsonschema:"Where the rest begins: for offset, or with a pattern for from_offset."`
	TotalBytes int64   `json:"total_bytes"`
	More       bool    `json:"more,omitempty" jsonschema:"There is more behind it: more bytes, or more matches."`
	Omitted    int64   `json:"omitted,omitempty" jsonschema:"So many bytes before text were asked for and are not in it: they are not kept, or there was no room for all of tail_lines. With pattern: so many were not searched, as they are not kept."`
	Matches    []match `json:"matches,omitempty"`

	searched bool
	cut      int64 // so many of Omitted are kept, and there was no room for them
}

// match is a line that a pattern has found.
type match struct {
	Line   int64  `json:"line,omitempty" jsonschema:"Its number, from 1."`
	Offset int64  `json:"offset" jsonschema:"Of its first byte."`
	Text   string `json:"text"`
}

// String is the line with where it is, for other calls.
func (m match) String() string {
	if m.Line == 0 {
		return fmt.Sprintf("offset %d: %s", m.Offset, m.Text)
	}
	return fmt.Sprintf("line %d, offset %d: %s", m.Line, m.Offset, m.Text)
}

// defaultMatches is how many lines are found unless the call says otherwise.
const defaultMatches = 50

// checkRead fills in what was left out, and says what cannot be meant.
func (s *Server) checkRead(in *readIn) (wrong problems) {
	wrong.when(count(in.Offset != nil || in.Bytes > 0, in.TailLines > 0, in.Pattern != "") > 1, "offset bytes tail_lines pattern",
		`only one of "offset" with "bytes", "tail_lines" and "pattern" can be used; with "pattern", "from_offset" is where to begin`)
	wrong.when(in.Pattern == "" && (in.MaxMatches > 0 || in.FromOffset > 0), "max_matches from_offset pattern",
		`"max_matches" and "from_offset" go with "pattern"`)
	wrong.when(in.Pattern == "" && in.TailLines == 0 && in.MaxOutput > 0, "max_output_bytes tail_lines pattern",
		`"max_output_bytes" goes with "tail_lines" or "pattern"; else "bytes" says how much to read`)
	wrong.matchable("pattern", in.Pattern)
	limit := s.opts.AnswerLimit
	in.Stream = cmp.Or(in.Stream, "stdout")
	in.Bytes = cmp.Or(in.Bytes, limit)
	in.MaxMatches = cmp.Or(in.MaxMatches, defaultMatches)
	in.MaxOutput = cmp.Or(in.MaxOutput, limit)
	return wrong
}

// readOutput reads more of an earlier output.
func readOutput(_ context.Context, c *call, in readIn) (readOut, error) {
	none := func(err error) (readOut, error) { return readOut{}, err }
	result, err := c.server.results.get(in.ResultID)
	if err != nil {
		if r, missing := c.server.sessions.Jobs(); missing == nil {
			if _, missing := r.Get(in.ResultID); missing == nil {
				err = fmt.Errorf("%s is a job, and no result: job_poll has what it has printed since, and job_log any part of it", in.ResultID)
			}
		}
		return none(err)
	}
	o := result.stdout
	if in.Stream == "stderr" {
		if result.merged {
			return none(fmt.Errorf("stderr of result %s is in its stream stdout, in the order in which it was written; run_command keeps it apart with merge_stderr: false", in.ResultID))
		}
		o = result.stderr
	}
	out, err := readOf(o, in)
	if errors.Is(err, command.ErrOmitted) {
		o.Path = "" // The file was there, and went just now: what is in memory counts.
		out, err = readOf(o, in)
	}
	if err != nil {
		return none(err)
	}
	return out, nil
}

func readOf(o command.Output, in readIn) (readOut, error) {
	out := readOut{ResultID: in.ResultID, Stream: in.Stream, TotalBytes: o.Total}
	switch {
	case in.Pattern != "":
		return out, out.search(o, in)
	case in.TailLines > 0:
		return out, out.tail(o, in)
	}
	return out, out.read(o, in)
}

func count(conditions ...bool) (n int) {
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

// search finds lines. The first that there is no room for says where the rest begins.
func (out *readOut) search(o command.Output, in readIn) (err error) {
	if in.FromOffset > o.Total {
		return badArgument(`"from_offset" is %d, and the stream has %d bytes`, in.FromOffset, o.Total)
	}
	out.searched, out.Offset, out.NextOffset = true, in.FromOffset, o.Total
	re, size := regexp.MustCompile(in.Pattern), 0
	out.Omitted, err = o.Scan(in.FromOffset, func(offset int64, line []byte) bool {
		text := plain(line, in.Raw)
		if !re.MatchString(text) {
			return true
		}
		size += len(text)
		if len(out.Matches) == in.MaxMatches || len(out.Matches) > 0 && size > in.MaxOutput {
			out.NextOffset, out.More = offset, true
			return false
		}
		if len(text) > in.MaxOutput {
			text = around(text, re.FindStringIndex(text)[0], in.MaxOutput, offset)
		}
		out.Matches = append(out.Matches, match{Offset: offset, Text: text})
		return true
	})
	return err
}

// around is as much of a long line as there is room for, with what was found in it.
func around(line string, found, room int, offset int64) string {
	from := min(max(0, found-room/4), len(line)-room)
	b := []byte(line[from : from+room])
	b = b[runes.BrokenStart(b):]
	b = b[:runes.Whole(b)]
	return fmt.Sprintf("%s [%d bytes of this line are left out: read_output with offset %d]", b, len(line)-len(b), offset)
}

// tail reads the last lines, as far as they are kept in one piece with the end.
func (out *readOut) tail(o command.Output, in readIn) error {
	var before, first, end int64 // the last gap, and the end of what is behind it
	for end < o.Total {
		before = end
		first, end = o.Kept(before)
	}
	begin, err := lastLines(o, first, in.TailLines)
	if err != nil {
		return err
	}
	lost := int64(0)
	if begin < first { // They begin in the gap.
		begin, lost = first, first-before
	}
	for room := int64(in.MaxOutput); ; room = room * 3 / 4 {
		at, all := begin, o.Total-begin <= room
		if !all {
			at = o.Total - room - 1 // The byte before what there is room for may end a line.
		}
		b := make([]byte, o.Total-at)
		if _, err := o.ReadAt(b, at); err != nil {
			return err
		}
		if !all {
			first := b[0]
			if b = b[1:]; first != '\n' {
				b = lines(b, true)
			}
		}
		b = runes.LastLines(b, mostLines)
		if out.Text = plain(b, in.Raw); len(out.Text) > in.MaxOutput { // What is no UTF-8 takes more room than it had.
			continue
		}
		out.Offset, out.NextOffset = o.Total-int64(len(b)), o.Total
		out.cut = out.Offset - begin
		out.Omitted = lost + out.cut
		return nil
	}
}

// lastLines returns where the last lines begin, of which there are so many, or -1 if that is
// before what is kept from first on.
func lastLines(o command.Output, first int64, n int) (begin int64, err error) {
	b := make([]byte, 64<<10)
	for at := o.Total; at > first; {
		b = b[:min(int64(cap(b)), at-first)]
		at -= int64(len(b))
		if _, err := o.ReadAt(b, at); err != nil {
			return 0, err
		}
		for i := len(b) - 1; i >= 0; i-- {
			if i = bytes.LastIndexByte(b[:i+1], '\n'); i < 0 {
				break
			}
			behind := at + int64(i) + 1
			if behind == o.Total {
				continue // It ends the last line.
			}
			if n--; n == 0 {
				return behind, nil
			}
		}
	}
	if first == 0 {
		return 0, nil
	}
	return -1, nil
}

// read reads a range.
func (out *readOut) read(o command.Output, in readIn) error {
	from := int64(0)
	if in.Offset != nil {
		from = *in.Offset
	}
	if from < 0 {
		from = max(0, o.Total+from)
	}
	if from > o.Total {
		return badArgument(`"offset" is %d, and the stream has %d bytes`, from, o.Total)
	}
	at, end := o.Kept(from)
	b := make([]byte, min(int64(in.Bytes), end-at))
	if _, err := o.ReadAt(b, at); err != nil {
		return err
	}
	if at+int64(len(b)) < end {
		if whole := lines(b, false); len(whole) > 0 {
			b = whole
		}
	}
	b = runes.FirstLines(b, mostLines)
	out.Text, out.Offset, out.NextOffset, out.Omitted = plain(b, in.Raw), at, at+int64(len(b)), at-from
	out.More = out.NextOffset < o.Total
	return nil
}

func (o readOut) text() string {
	var text strings.Builder
	switch lost := o.Omitted - o.cut; {
	case lost == 0:
	case o.searched:
		fmt.Fprintf(&text, "[%d bytes were not searched: they are not kept]\n", lost)
	default:
		fmt.Fprintf(&text, "[%d bytes before this are not kept]\n", lost)
	}
	if o.cut > 0 {
		fmt.Fprintf(&text, "[%d bytes of these lines are left out: read_output with offset %d, or max_output_bytes]\n", o.cut, o.Offset-o.cut)
	}
	for _, m := range o.Matches {
		text.WriteString(m.String() + "\n")
	}
	text.WriteString(body(o.Text))
	where := fmt.Sprintf("bytes %d to %d of %d of %s", o.Offset, o.NextOffset, o.TotalBytes, o.Stream)
	switch {
	case o.searched:
		where = fmt.Sprintf("%d lines found in %s", len(o.Matches), o.Stream)
		if len(o.Matches) == 0 && o.Omitted > 0 { // A model takes the 0 away, and the line above not.
			where = "not found in what is kept of " + o.Stream
		}
		if o.More {
			where += fmt.Sprintf("; more: from_offset %d", o.NextOffset)
		}
	case o.NextOffset == o.Offset:
		where = fmt.Sprintf("nothing there: %s has %d bytes", o.Stream, o.TotalBytes)
	case o.More:
		where += fmt.Sprintf("; the rest: offset %d", o.NextOffset)
	}
	text.WriteString(remarks(where))
	return text.String()
}
