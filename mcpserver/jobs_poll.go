package mcpserver

import (
	"context"
	"fmt"

	"github.com/limpet-sh/limpet/jobs"
)

// jobPollIn is what job_poll is asked.
type jobPollIn struct {
	Job       string `json:"job" jsonschema:"The id of the job."`
	Since     *int64 `json:"since,omitempty" jsonschema:"Return what was printed from this offset on, as next_offset of an earlier answer. Default: what no job_poll has returned yet." min:"0"`
	MaxOutput int    `json:"max_output_bytes,omitempty" jsonschema:"How much to return at most; the rest comes with the next call. Default: 16384." min:"256" max:"32768"`
	Raw       bool   `json:"raw,omitempty" jsonschema:"Keep escape sequences and carriage returns."`
}

// jobPollOut is what job_poll returns.
type jobPollOut struct {
	Job        *jobOut  `json:"job"`
	Output     string   `json:"output" jsonschema:"What is new."`
	Offset     int64    `json:"offset" jsonschema:"Of its first byte in all that the job has printed."`
	NextOffset int64    `json:"next_offset" jsonschema:"Where the rest begins."`
	Dropped    int64    `json:"dropped_bytes,omitempty" jsonschema:"So many bytes before output were never returned, and are not kept."`
	More       int64    `json:"more_bytes,omitempty" jsonschema:"So many bytes are new behind output."`
	Binary     bool     `json:"binary,omitempty" jsonschema:"It is no text."`
	Notices    []string `json:"notices,omitempty" jsonschema:"What else has happened in the job's session."`
}

func pollJob(ctx context.Context, c *call, in jobPollIn) (jobPollOut, error) {
	if in.MaxOutput == 0 {
		in.MaxOutput = c.server.opts.AnswerLimit
	}
	r, err := c.server.sessions.Jobs()
	if err != nil {
		return jobPollOut{}, err
	}
	if in.Since != nil {
		if err := c.within(r, in.Job, "since", *in.Since); err != nil {
			return jobPollOut{}, err
		}
	}
	// Plain has it end where no escape sequence is cut in two.
	p, err := r.Poll(in.Job, &jobs.PollOptions{Lines: -1, Bytes: in.MaxOutput, NewLines: mostLines, Plain: !in.Raw, Since: in.Since})
	if err != nil {
		return jobPollOut{}, c.noJob(r, in.Job, err)
	}
	out := jobPollOut{
		Job: jobOf(p.Job), Output: p.New, Offset: p.Offset, NextOffset: p.Next, Dropped: p.Dropped, More: p.More, Binary: p.Binary,
	}
	b := []byte(p.New)
	if !in.Raw {
		if whole, at := printed(r, in.Job, p.Offset, out.NextOffset); at == p.Offset {
			b = whole // With what erases, which plain knows.
		}
	}
	out.Output = plain(b, in.Raw)
	out.Notices = c.told(ctx, r, p.Job)
	return out, nil
}

// within refuses an offset behind all that a job has printed. It does not count as having
// seen the job's end.
func (c *call) within(r *jobs.Registry, id, name string, offset int64) error {
	job, err := r.Get(id)
	if err != nil {
		return c.noJob(r, id, err)
	}
	if end := job.Output.End; offset > end {
		return badArgument("%q is %d, and the job has printed %d bytes", name, offset, end)
	}
	return nil
}

// printed is what is kept of what a job has printed between two offsets, with its escape
// sequences, and where that begins. It does not count as having seen the job's end.
func printed(r *jobs.Registry, id string, from, to int64) (b []byte, at int64) {
	at = from
	if to <= from {
		return nil, at
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // What is there is wanted, and nothing that is to come.
	for chunk, err := range r.Follow(ctx, id, from) {
		if err != nil || chunk.Offset >= to {
			break // It may be forgotten.
		}
		if chunk.Offset != at+int64(len(b)) {
			b, at = nil, chunk.Offset // What is between is not kept.
		}
		b = append(b, chunk.Data[:min(int64(len(chunk.Data)), to-chunk.Offset)]...)
		if at+int64(len(b)) == to {
			break
		}
	}
	return b, at
}

func (o jobPollOut) text() string {
	text := ""
	if o.Dropped > 0 {
		text = fmt.Sprintf("[%d bytes before this came too fast, and are not kept]\n", o.Dropped)
	}
	lines := []string{fmt.Sprintf("nothing new behind byte %d", o.NextOffset)}
	if o.NextOffset > o.Offset {
		lines[0] = fmt.Sprintf("bytes %d to %d", o.Offset, o.NextOffset)
	}
	if o.More > 0 {
		lines[0] += fmt.Sprintf("; %d more: job_poll again, or job_log for the last lines", o.More)
	}
	if o.Binary {
		lines = append(lines, "it is no text")
	}
	lines = append(lines, o.Job.String())
	return text + body(o.Output) + remarks(append(lines, o.Notices...)...)
}
