package mcpserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/limpet-sh/limpet/jobs"
)

// jobWriteIn is what job_write and job_submit are asked.
type jobWriteIn struct {
	Job  string `json:"job" jsonschema:"The id of the job."`
	Text string `json:"text" jsonschema:"What to write."`
}

// jobWriteOut is what job_write returns.
type jobWriteOut struct {
	Job     *jobOut  `json:"job"`
	Written int      `json:"written" jsonschema:"How many bytes were taken."`
	Notices []string `json:"notices,omitempty" jsonschema:"What else has happened in the job's session."`
}

// jobDoneOut is what job_submit and job_close return.
type jobDoneOut struct {
	Job     *jobOut  `json:"job"`
	Notices []string `json:"notices,omitempty" jsonschema:"What else has happened in the job's session."`

	done string
}

func writeToJob(ctx context.Context, c *call, in jobWriteIn) (jobWriteOut, error) {
	var written int
	job, notices, err := c.input(ctx, in.Job, in.Text, func(r *jobs.Registry) (err error) {
		written, err = r.Write(in.Job, []byte(in.Text))
		if errors.Is(err, jobs.ErrNotRead) {
			return fmt.Errorf("job %q does not read its input: %d of %d bytes were taken, and are not taken back; write the rest when it reads on", in.Job, written, len(in.Text))
		}
		return err
	})
	return jobWriteOut{job, written, notices}, err
}

func submitToJob(ctx context.Context, c *call, in jobWriteIn) (jobDoneOut, error) {
	job, notices, err := c.input(ctx, in.Job, in.Text+"\n", func(r *jobs.Registry) error {
		err := r.Submit(in.Job, in.Text)
		if errors.Is(err, jobs.ErrNotRead) {
			return fmt.Errorf("job %q does not read its input: what was taken of the line is not taken back; see by job_poll what it is at", in.Job)
		}
		return err
	})
	return jobDoneOut{job, notices, "the line was written"}, err
}

func closeJob(ctx context.Context, c *call, in jobIn) (jobDoneOut, error) {
	job, notices, err := c.input(ctx, in.Job, "", func(r *jobs.Registry) error { return r.CloseStdin(in.Job) })
	return jobDoneOut{job, notices, "its input is at its end"}, err
}

// input does something with what a job reads, which writes a text, and returns how the job is then.
func (c *call) input(ctx context.Context, id, text string, do func(*jobs.Registry) error) (*jobOut, []string, error) {
	r, err := c.server.sessions.Jobs()
	if err != nil {
		return nil, nil, err
	}
	if job, err := r.Get(id); err == nil && text != "" { // Else do says what is wrong.
		if err := c.approveInput(ctx, job.Session, id, text); err != nil {
			return nil, nil, err
		}
	}
	if err := do(r); err != nil {
		return nil, nil, c.notWritten(r, id, err)
	}
	job, err := r.Get(id)
	if err != nil {
		return nil, nil, c.noJob(r, id, err)
	}
	return jobOf(job), c.told(ctx, r, job), nil
}

// notWritten says why a job cannot be written to, and what to do about it.
func (c *call) notWritten(r *jobs.Registry, id string, err error) error {
	job, missing := r.Get(id)
	switch {
	case missing != nil:
		return c.noJob(r, id, missing)
	case errors.Is(err, jobs.ErrFinished):
		c.saw(r, job)
		return fmt.Errorf("nothing can be written to job %q any more, it ends or has ended; job_log has what it printed (%s)", id, jobOf(job))
	case errors.Is(err, jobs.ErrNotPossible) && job.Stdin:
		return fmt.Errorf("the standard input of job %q is closed: by an earlier job_close, or it reads no more; to write to it again, start it anew", id)
	case errors.Is(err, jobs.ErrNotPossible):
		return fmt.Errorf("job %q has no standard input to write to: start it anew, by run_command with background: true and keep_stdin_open: true, or on a terminal by terminal_create", id)
	}
	return err
}

func (o jobWriteOut) text() string {
	return remarks(append([]string{fmt.Sprintf("%d bytes were written", o.Written), o.Job.String()}, o.Notices...)...)
}

func (o jobDoneOut) text() string {
	return remarks(append([]string{o.done, o.Job.String()}, o.Notices...)...)
}
