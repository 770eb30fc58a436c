package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/limpet-sh/limpet/jobs"
)

// jobListIn is what job_list is asked.
type jobListIn struct {
	Session string `json:"session,omitempty" jsonschema:"Those of this session alone. Default: all."`
	State   string `json:"state,omitempty" jsonschema:"running: also those that have ended and left processes running. Default: all." enum:"running,finished,all"`
}

// jobListOut is what job_list returns.
type jobListOut struct {
	Jobs    []*jobOut `json:"jobs"`
	Omitted int       `json:"omitted,omitempty" jsonschema:"So many older ones are left out: session and state narrow the list."`
	Notices []string  `json:"notices,omitempty" jsonschema:"What else has happened in the session that was asked for."`
}

// mostJobs bounds a list.
const mostJobs = 100

func listJobs(ctx context.Context, c *call, in jobListIn) (jobListOut, error) {
	out := jobListOut{Jobs: []*jobOut{}}
	in.Session = c.server.named(in.Session)
	r, err := c.server.sessions.Jobs()
	if err != nil {
		return out, err
	}
	all, err := r.List(jobs.Filter{Session: in.Session})
	if err != nil {
		return out, err
	}
	var list []jobs.Job
	list, out.Omitted = wanted(all, in.State)
	for _, job := range list {
		out.Jobs = append(out.Jobs, jobOf(job))
		if in.Session != "" && ctx.Err() == nil { // Who lists all jobs may be another than who waits for one.
			c.saw(r, job)
		}
	}
	if in.Session != "" && ctx.Err() == nil {
		out.Notices = c.noticesOf(in.Session)
	}
	return out, nil
}

// wanted are the jobs of a state, the last ones if there are too many, and how many are
// left out then.
func wanted(all []jobs.Job, state string) (list []jobs.Job, omitted int) {
	for _, job := range all {
		finished := job.State.Finished()
		if state == "running" && finished && !job.Leftover || state == "finished" && !finished {
			continue
		}
		list = append(list, job)
	}
	omitted = max(0, len(list)-mostJobs)
	return list[omitted:], omitted
}

func (o jobListOut) text() string {
	var text strings.Builder
	if o.Omitted > 0 {
		fmt.Fprintf(&text, "[%d older jobs are left out: session and state narrow the list]\n", o.Omitted)
	}
	for _, job := range o.Jobs {
		text.WriteString(job.String() + "\n")
	}
	if len(o.Jobs) == 0 {
		text.WriteString("there are no such jobs; run_command with background: true starts one\n")
	}
	text.WriteString(remarks(o.Notices...))
	return strings.TrimSuffix(text.String(), "\n")
}
