package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"

	"github.com/limpet-sh/limpet/command"
)

// readIn is what read_output is asked.
type readIn struct {
	ResultID   string `json:"result_id" jsonschema:"That of a run_command, as r7."`
	Stream     string `json:"stream,omitempty" jsonschema:"Default: stdout." enum:"stdout,stderr"`
	Offset     *int64 `json:"offset,omitempty" jsonschema:"The first byte to read, from 0; negative counts from the end."`
	Bytes      int    `json:"bytes,omitempty" jsonschema:"How many bytes to read from there. Default: 16384." min:"1" max:"262144"`
	TailLines  int    `json:"tail_lines,omitempty" jsonschema:"Read so many of the last lines, instead." min:"1" max:"10000"`
	Pattern    string `json:"pattern,omitempty" jsonschema:"Find the lines that match this regular expression (RE2), instead."`
	MaxMatches int    `json:"max_matches,omitempty" jsonschema:"At most so many. Default: 50." min:"1" max:"1000"`
	Raw        bool   `json:"raw,omitempty" jsonschema:"Keep escape sequences and carriage returns."`
}

// readOut is what read_output returns.
type readOut struct {
	ResultID   string  `json:"result_id"`
	Stream     string  `json:"stream"`
	Text       string  `json:"text"`
	Offset     int64   `json:"offset" jsonschema:"Of the first byte of text in the stream."`
	NextOffset int64   `json:"next_offset" jsonschema:"Where the rest begins."`
	TotalBytes int64   `json:"total_bytes"`
	More       bool    `json:"more,omitempty" jsonschema:"There is more behind it: more bytes, or more matches."`
	Omitted    int64   `json:"omitted,omitempty" jsonschema:"So many bytes before text were asked for and are not kept."`
	Matches    []match `json:"matches,omitempty"`
}

// match is a line that a pattern has found.
type match struct {
	Line   int64  `json:"line,omitempty" jsonschema:"Its number, from 1."`
	Offset int64  `json:"offset" jsonschema:"Of its first byte."`
	Text   string `json:"text"`
}

// The defaults of read_output.
const (
	defaultBytes   = 16 << 10
	defaultMatches = 50
)

// readOutput reads more of an earlier output.
func readOutput(_ context.Context, c *call, in readIn) (readOut, error) {
	none := func(err error) (readOut, error) { return readOut{}, err }
	if in.Stream == "" {
		in.Stream = "stdout"
	}
	if n := count(in.Offset != nil || in.Bytes > 0, in.TailLines > 0, in.Pattern != ""); n > 1 {
		return none(badArgument(`only one of "offset" with "bytes", "tail_lines" and "pattern" can be used`))
	}
	result, err := c.server.results.get(in.ResultID)
	if err != nil {
		return none(err)
	}
	o := result.stdout
	if in.Stream == "stderr" {
		o = result.stderr
	}
	out := readOut{ResultID: in.ResultID, Stream: in.Stream, TotalBytes: o.Total}
	switch {
	case in.Pattern != "":
		err = out.search(o, in)
	case in.TailLines > 0:
		err = out.tail(o, in)
	default:
		err = out.read(o, in)
	}
	if err != nil {
		return none(err)
	}
	return out, nil
}

func count(conditions ...bool) (n int) {
	for _, c := range conditions {
		if c {
			n++
		}
	}
	return n
}

func (out *readOut) search(o command.Output, in readIn) error {
	if err := matchable("pattern", in.Pattern); err != nil {
		return err
	}
	most := in.MaxMatches
	if most == 0 {
		most = defaultMatches
	}
	found, err := o.Search(regexp.MustCompile(in.Pattern), most+1)
	if err != nil {
		return gone(err)
	}
	if len(found) > most {
		found, out.More = found[:most], true
	}
	for _, m := range found {
		out.Matches = append(out.Matches, match{Offset: m.Offset, Text: lastOf(plain([]byte(m.Line), in.Raw))})
	}
	out.NextOffset = o.Total
	return nil
}

// tail reads the last lines, of which as many are looked for as an answer can have.
func (out *readOut) tail(o command.Output, in readIn) error {
	const most = 256 << 10
	from := max(0, o.Total-most)
	b, from, err := readFrom(o, from, most)
	if err != nil {
		return gone(err)
	}
	begin := len(b)
	for range in.TailLines {
		end := max(0, begin-1) // Before the newline of the line before.
		i := strings.LastIndexByte(string(b[:end]), '\n')
		begin = i + 1
		if i < 0 {
			break
		}
	}
	out.Text, out.Offset, out.NextOffset = plain(b[begin:], in.Raw), from+int64(begin), o.Total
	return nil
}

func (out *readOut) read(o command.Output, in readIn) error {
	size := in.Bytes
	if size == 0 {
		size = defaultBytes
	}
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
	b, at, err := readFrom(o, from, size)
	if err != nil {
		return gone(err)
	}
	if at+int64(len(b)) < o.Total {
		b = lines(b, false)
	}
	out.Text, out.Offset, out.NextOffset, out.Omitted = plain(b, in.Raw), at, at+int64(len(b)), at-from
	out.More = out.NextOffset < o.Total
	return nil
}

// readFrom reads what is kept from an offset on, or, if that is in a gap, behind it.
func readFrom(o command.Output, from int64, most int) (b []byte, at int64, err error) {
	b = make([]byte, min(int64(most), o.Total-from))
	n, err := o.ReadAt(b, from)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, command.ErrOmitted) && n > 0:
		err = nil
	case errors.Is(err, command.ErrOmitted):
		// The end is kept in any case.
		if behind := o.Total - int64(len(o.Tail)); from < behind {
			return readFrom(o, behind, most)
		}
	}
	return b[:n], from, err
}

// gone says what became of a file that an output is in.
func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrClosed) {
		return errors.New("that part of the output is not kept any more: the session has printed too much since, or was closed; run the command again, with its output in a file")
	}
	return err
}

func (o readOut) text() string {
	var text strings.Builder
	for _, m := range o.Matches {
		fmt.Fprintf(&text, "%d: %s\n", m.Offset, m.Text)
	}
	if o.Omitted > 0 {
		fmt.Fprintf(&text, "[%d bytes before this are not kept]\n", o.Omitted)
	}
	text.WriteString(o.Text)
	if o.Text != "" && !strings.HasSuffix(o.Text, "\n") {
		text.WriteByte('\n')
	}
	switch {
	case o.Matches != nil || o.Text == "" && o.NextOffset == o.TotalBytes && o.Offset == 0:
		fmt.Fprintf(&text, "[%d lines found in %d bytes of %s", len(o.Matches), o.TotalBytes, o.Stream)
		if o.More {
			text.WriteString("; there are more")
		}
	default:
		fmt.Fprintf(&text, "[bytes %d to %d of %d of %s", o.Offset, o.NextOffset, o.TotalBytes, o.Stream)
		if o.More {
			fmt.Fprintf(&text, "; the rest: offset %d", o.NextOffset)
		}
	}
	text.WriteByte(']')
	return text.String()
}
