package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/jobs"
)

// jobLogIn is what job_log is asked.
type jobLogIn struct {
	Job        string `json:"job" jsonschema:"The id of the job."`
	TailLines  int    `json:"tail_lines,omitempty" jsonschema:"Read so many of the last lines. Default: 100." min:"1" max:"10000"`
	HeadLines  int    `json:"head_lines,omitempty" jsonschema:"Or: so many of the first lines that are kept." min:"1" max:"10000"`
	Line       int64  `json:"line,omitempty" jsonschema:"Or: from the line of this number on, from 1." min:"1"`
	Lines      int    `json:"lines,omitempty" jsonschema:"With line: how many. Default: 100." min:"1" max:"10000"`
	Offset     *int64 `json:"offset,omitempty" jsonschema:"Or: from this byte on, from 0; negative counts from the end."`
	Bytes      int    `json:"bytes,omitempty" jsonschema:"With offset: how many. Default: 16384." min:"1" max:"32768"`
	Pattern    string `json:"pattern,omitempty" jsonschema:"Or: find the lines that match this regular expression (RE2)."`
	MaxMatches int    `json:"max_matches,omitempty" jsonschema:"With pattern: at most so many. Default: 50." min:"1" max:"1000"`
	FromOffset int64  `json:"from_offset,omitempty" jsonschema:"With pattern: search from this byte on." min:"0"`
	MaxOutput  int    `json:"max_output_bytes,omitempty" jsonschema:"How much of the lines, or matches, to return at most. Default: 16384." min:"256" max:"32768"`
	Raw        bool   `json:"raw,omitempty" jsonschema:"Keep escape sequences and carriage returns. Matches never have them."`
}

// jobLogOut is what job_log returns.
type jobLogOut struct {
	Job        *jobOut  `json:"job"`
	Text       string   `json:"text"`
	Offset     int64    `json:"offset" jsonschema:"Of the first byte of text in all that the job has printed."`
	NextOffset int64    `json:"next_offset" jsonschema:"Where the rest begins: for offset, or with a pattern for from_offset."`
	Line       int64    `json:"line,omitempty" jsonschema:"The number of the line that text begins in, from 1."`
	Dropped    int64    `json:"dropped_bytes,omitempty" jsonschema:"So many bytes were asked for, or would have been searched, and are not kept any more."`
	Omitted    int64    `json:"omitted_bytes,omitempty" jsonschema:"So many bytes of the lines are left out before text, for max_output_bytes."`
	Matches    []match  `json:"matches,omitempty"`
	More       bool     `json:"more,omitempty" jsonschema:"There is more behind it: more bytes, or more matches."`
	Binary     bool     `json:"binary,omitempty" jsonschema:"It is no text."`
	Notices    []string `json:"notices,omitempty" jsonschema:"What else has happened in the job's session."`

	searched bool
}

// defaultLines is how many lines job_log returns.
const defaultLines = 100

// checkJobLog fills in what was left out, and says what cannot be meant.
func (s *Server) checkJobLog(in *jobLogIn) (wrong problems) {
	limit := s.opts.AnswerLimit
	byLine, byOffset := in.Line > 0 || in.Lines > 0, in.Offset != nil || in.Bytes > 0
	wrong.when(count(in.TailLines > 0, in.HeadLines > 0, byLine, byOffset, in.Pattern != "") > 1, "tail_lines head_lines line lines offset bytes pattern",
		`only one of "tail_lines", "head_lines", "line" with "lines", "offset" with "bytes", and "pattern" can be used`)
	wrong.when(in.Pattern == "" && (in.MaxMatches > 0 || in.FromOffset > 0), "max_matches from_offset pattern",
		`"max_matches" and "from_offset" go with "pattern"`)
	wrong.matchable("pattern", in.Pattern)
	fill := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	fill(&in.MaxOutput, limit)
	fill(&in.MaxMatches, defaultMatches)
	switch {
	case byOffset:
		fill(&in.Bytes, limit)
	case byLine:
		fill(&in.Lines, defaultLines)
	case in.HeadLines == 0:
		fill(&in.TailLines, defaultLines)
	}
	return wrong
}

func logOfJob(ctx context.Context, c *call, in jobLogIn) (jobLogOut, error) {
	none := func(err error) (jobLogOut, error) { return jobLogOut{}, err }
	r, err := c.server.sessions.Jobs()
	if err != nil {
		return none(err)
	}
	name, offset := "offset", int64(0)
	switch {
	case in.Offset != nil:
		offset = *in.Offset
	case in.FromOffset > 0:
		name, offset = "from_offset", in.FromOffset
	}
	if err := c.within(r, in.Job, name, offset); err != nil {
		return none(err)
	}
	var out jobLogOut
	var job jobs.Job
	switch {
	case in.Pattern != "":
		job, err = out.search(r, in)
	case in.Bytes > 0:
		job, err = out.bytes(r, in)
	default:
		job, err = out.lines(r, in)
	}
	if err != nil {
		return none(c.noJob(r, in.Job, err))
	}
	out.Job = jobOf(job)
	out.Notices = c.told(ctx, r, job)
	return out, nil
}

// search finds lines. One more than there is room for says where the rest begins.
func (out *jobLogOut) search(r *jobs.Registry, in jobLogIn) (jobs.Job, error) {
	found, err := r.Search(in.Job, in.Pattern, jobs.SearchOptions{From: in.FromOffset, Max: in.MaxMatches + 1})
	if err != nil {
		return found.Job, err
	}
	out.searched, out.Offset, out.NextOffset, out.Dropped = true, in.FromOffset, found.Job.Output.End, found.Dropped
	size := 0
	for i, m := range found.Matches {
		size += len(m.Text)
		if i == in.MaxMatches || i > 0 && size > in.MaxOutput {
			out.NextOffset, out.More = m.Offset, true
			break
		}
		out.Matches = append(out.Matches, match{Line: m.Number, Offset: m.Offset, Text: plain([]byte(m.Text), false)})
	}
	return found.Job, nil
}

// bytes reads from an offset on, up to the end of a line if there is one, and not into an
// escape sequence.
func (out *jobLogOut) bytes(r *jobs.Registry, in jobLogIn) (jobs.Job, error) {
	first := int64(0)
	if in.Offset != nil {
		first = *in.Offset
	}
	log, err := r.Log(in.Job, jobs.LogOptions{Offset: &first, Bytes: in.Bytes, Plain: !in.Raw})
	if err != nil {
		return log.Job, err
	}
	b := []byte(log.Text)
	if !in.Raw { // Bytes that were taken out could not be counted.
		var at int64
		b, at = printed(r, in.Job, log.Offset, log.Next)
		log.Dropped, log.Offset = log.Dropped+at-log.Offset, at
	}
	if log.Next < log.Job.Output.End {
		b = lines(b, false)
	}
	b = runes.FirstLines(b, mostLines)
	out.put(log, b, in.Raw)
	return log.Job, nil
}

// lines reads lines, of which there may be more than an answer has room for: of the last
// ones their end counts, else their beginning.
func (out *jobLogOut) lines(r *jobs.Registry, in jobLogIn) (jobs.Job, error) {
	log, err := r.Log(in.Job, jobs.LogOptions{Tail: in.TailLines, Head: in.HeadLines, Line: in.Line, Lines: in.Lines})
	if err != nil {
		return log.Job, err
	}
	b := []byte(log.Text)
	switch {
	case in.HeadLines > 0:
		log.Dropped = log.Job.Output.First // The first ones of all would be before.
		fallthrough
	case in.Lines > 0:
		if len(b) > in.MaxOutput {
			b = lines(b[:in.MaxOutput], false)
		}
		b = runes.FirstLines(b, mostLines)
	default:
		kept := b
		if len(b) > in.MaxOutput {
			kept = lines(b[len(b)-in.MaxOutput:], true)
		}
		kept = runes.LastLines(kept, mostLines)
		out.Omitted = int64(len(b) - len(kept))
		log.Offset += out.Omitted
		log.Line += int64(bytes.Count(b[:out.Omitted], []byte{'\n'}))
		b = kept
	}
	out.put(log, b, in.Raw)
	return log.Job, nil
}

// put puts the bytes into the answer that begin where the log does.
func (out *jobLogOut) put(log jobs.Log, b []byte, raw bool) {
	out.Text, out.Offset, out.NextOffset, out.Line = plain(b, raw), log.Offset, log.Offset+int64(len(b)), log.Line
	out.Dropped, out.Binary = log.Dropped, log.Binary
	out.More = len(b) > 0 && out.NextOffset < log.Job.Output.End
}

func (o jobLogOut) text() string {
	var text strings.Builder
	if o.Dropped > 0 {
		fmt.Fprintf(&text, "[%d bytes before this are not kept any more]\n", o.Dropped)
	}
	if o.Omitted > 0 {
		fmt.Fprintf(&text, "[%d bytes of these lines are left out: job_log with offset %d, or max_output_bytes]\n", o.Omitted, o.Offset-o.Omitted)
	}
	for _, m := range o.Matches {
		text.WriteString(m.String() + "\n")
	}
	text.WriteString(body(o.Text))
	where := fmt.Sprintf("bytes %d to %d of %d, from line %d on", o.Offset, o.NextOffset, o.Job.OutputBytes, o.Line)
	switch {
	case o.searched:
		where = fmt.Sprintf("%d lines found", len(o.Matches))
		if len(o.Matches) == 0 && o.Dropped > 0 {
			where = "not found in what is kept"
		}
		if o.More {
			where += fmt.Sprintf("; more: from_offset %d", o.NextOffset)
		}
	case o.NextOffset == o.Offset:
		where = "nothing there"
	case o.More:
		where += fmt.Sprintf("; the rest: offset %d", o.NextOffset)
	}
	kind := ""
	if o.Binary {
		kind = "it is no text"
	}
	text.WriteString(remarks(append([]string{where, kind, o.Job.String()}, o.Notices...)...))
	return text.String()
}
