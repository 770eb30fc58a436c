package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/jobs"
)

// jobWaitIn is what job_wait is asked.
type jobWaitIn struct {
	Jobs           []string `json:"jobs,omitempty" jsonschema:"The ids of the jobs, of which any will do. Default: any that runs now."`
	Session        string   `json:"session,omitempty" jsonschema:"Without jobs: any that runs in this session."`
	Pattern        string   `json:"pattern,omitempty" jsonschema:"Wait for a line that matches this regular expression (RE2), which may be there already; or for a prompt."`
	FromOffset     int64    `json:"from_offset,omitempty" jsonschema:"With pattern: look from this byte of the output on, as next_offset of job_poll; for what comes now. Default: 0." min:"0"`
	SilenceSeconds float64  `json:"silence_seconds,omitempty" jsonschema:"Wait until a job has printed nothing for so long." min:"0.001" max:"1e9"`
	Port           int      `json:"port,omitempty" jsonschema:"Wait until somebody listens at this TCP port of this machine." min:"1" max:"65535"`
	TimeoutSeconds float64  `json:"timeout_seconds,omitempty" jsonschema:"Wait no longer than this. The default is in the description." min:"0.001"`
}

// jobWaitOut is what job_wait returns.
type jobWaitOut struct {
	Reason         string   `json:"reason" jsonschema:"Why the wait has ended." enum:"exited,matched,silent,port open,timeout,cancelled,interrupted"`
	Job            *jobOut  `json:"job" jsonschema:"The one that has ended it, else the first."`
	Match          *match   `json:"match,omitempty" jsonschema:"The line that was found."`
	ElapsedSeconds float64  `json:"elapsed_seconds"`
	Output         string   `json:"output" jsonschema:"The last lines that the job has printed. job_poll and job_log have the rest."`
	Notices        []string `json:"notices,omitempty" jsonschema:"What else has happened in the job's session."`
}

const (
	defaultJobWait = time.Minute

	// What an answer has of the output: who waits wants to know how it went.
	waitLines = 10
	waitBytes = 4 << 10
)

func waitForJob(ctx context.Context, c *call, in jobWaitIn) (jobWaitOut, error) {
	none := func(err error) (jobWaitOut, error) { return jobWaitOut{}, err }
	r, err := c.server.sessions.Jobs()
	if err != nil {
		return none(err)
	}
	o := jobs.WaitOptions{Pattern: in.Pattern, From: in.FromOffset, Silence: seconds(in.SilenceSeconds)}
	if in.Port > 0 {
		o.Port = strconv.Itoa(in.Port)
	}
	if o.IDs, err = waitedFor(r, in); err != nil {
		return none(err)
	}
	stop := c.progress(ctx, func() string { return lastPrinted(r, o.IDs) })
	began := time.Now()
	got, err := awaitJobs(ctx, r, o, c.patience(in.TimeoutSeconds))
	elapsed := time.Since(began)
	stop()
	if err != nil {
		id := ""
		if e, ok := errors.AsType[*jobs.Error](err); ok {
			id = e.ID
		}
		return none(c.noJob(r, id, err))
	}
	out := jobWaitOut{Reason: string(got.Reason), ElapsedSeconds: rounded(elapsed)}
	if m := got.Match; m != nil {
		out.Match = &match{Line: m.Number, Offset: m.Offset, Text: plain([]byte(m.Text), false)}
	}
	out.Output = plain(jobTail(r, got.Job), false)
	out.Job, out.Notices = jobOf(got.Job), c.told(ctx, r, got.Job)
	return out, nil
}

// checkJobWait fills in what was left out, and says what cannot be meant.
func (s *Server) checkJobWait(in *jobWaitIn) (wrong problems) {
	in.TimeoutSeconds = s.longestWait(in.TimeoutSeconds, defaultJobWait)
	wrong.when(len(in.Jobs) > 0 && in.Session != "", "jobs session", `only one of "jobs" and "session" can be used`)
	wrong.when(in.Pattern == "" && in.FromOffset > 0, "from_offset pattern", `"from_offset" goes with "pattern"`)
	wrong.matchable("pattern", in.Pattern)
	return wrong
}

// longestWait is for how many seconds a call waits that has asked for so many, or for none. What is too
// long is no mistake: what is waited for runs on, and can be waited for again.
func (s *Server) longestWait(asked float64, usual time.Duration) float64 {
	return min(cmp.Or(asked, usual.Seconds()), s.opts.MaxTimeout.Seconds())
}

// patience is for how long a call waits: a client that gives up soon is answered before that.
func (c *call) patience(asked float64) time.Duration {
	if soon, hurried := c.hurried(); hurried {
		return min(seconds(asked), soon)
	}
	return seconds(asked)
}

// waitedFor are the ids of the jobs that are meant.
func waitedFor(r *jobs.Registry, in jobWaitIn) (ids []string, err error) {
	for _, id := range in.Jobs {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		return ids, nil
	}
	running, err := r.List(jobs.Filter{Session: in.Session, States: []jobs.State{jobs.Starting, jobs.Running, jobs.Ending}})
	if err != nil {
		return nil, err
	}
	for _, job := range running {
		ids = append(ids, job.ID)
	}
	if len(ids) == 0 {
		where := ""
		if in.Session != "" {
			where = fmt.Sprintf(" in session %q", in.Session)
		}
		return nil, fmt.Errorf("no job runs%s: name one that has ended (job_list has them), or start one by run_command with background: true", where)
	}
	return ids, nil
}

// awaitJobs waits. What the registry takes for a long wait may be short for its caller. That
// the call was cancelled is a result.
func awaitJobs(ctx context.Context, r *jobs.Registry, o jobs.WaitOptions, timeout time.Duration) (jobs.Waited, error) {
	for deadline := time.Now().Add(timeout); ; {
		o.Timeout = max(time.Until(deadline), time.Millisecond)
		got, err := r.Wait(ctx, o)
		switch {
		case err == nil && got.Reason == jobs.WaitTimeout && got.Clamped:
			continue
		case err == nil || got.Reason != jobs.WaitInterrupted:
			return got, err
		case !errors.Is(err, jobs.ErrInterrupted):
			got.Reason = "cancelled"
		}
		return got, nil
	}
}

// lastPrinted is the last line of the job that has printed last.
func lastPrinted(r *jobs.Registry, ids []string) string {
	var last jobs.Job
	for _, id := range ids {
		job, err := r.Get(id)
		if err == nil && job.LastOutput.After(last.LastOutput) {
			last = job
		}
	}
	end := last.Output.End
	b, _ := printed(r, last.ID, max(0, end-longestLine), end)
	return lastOf(plain(b, false))
}

// jobTail is the last lines of what a job had printed, with their escape sequences.
func jobTail(r *jobs.Registry, job jobs.Job) []byte {
	end := job.Output.End
	b, at := printed(r, job.ID, max(0, end-waitBytes), end)
	if at > 0 {
		b = lines(b, true)
	}
	return runes.LastLines(b, waitLines)
}

func (o jobWaitOut) text() string {
	why := fmt.Sprintf("%s after %v s", o.Reason, o.ElapsedSeconds)
	if m := o.Match; m != nil {
		why += ": " + m.String()
	}
	if o.Reason == string(jobs.WaitTimeout) {
		why += ": it can be waited for again"
	}
	return body(o.Output) + remarks(append([]string{why, o.Job.String()}, o.Notices...)...)
}
