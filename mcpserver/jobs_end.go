package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/limpet-sh/limpet/jobs"
)

// jobKillOut is what job_kill returns.
type jobKillOut struct {
	Job      *jobOut   `json:"job"`
	Killed   bool      `json:"killed" jsonschema:"false: it had ended before, or something of it lives on (see survived)."`
	Survived []process `json:"survived,omitempty" jsonschema:"Processes of it that could not be ended."`
	Notices  []string  `json:"notices,omitempty" jsonschema:"What else has happened in the job's session."`
}

func killJob(ctx context.Context, c *call, in jobIn) (jobKillOut, error) {
	none := func(err error) (jobKillOut, error) { return jobKillOut{}, err }
	r, err := c.server.sessions.Jobs()
	if err != nil {
		return none(err)
	}
	stopped, err := r.Stop(ctx, in.Job)
	c.server.followed.changed()
	switch {
	case stopped.Job.ID == "":
		return none(c.noJob(r, in.Job, err))
	case err != nil && !errors.Is(err, jobs.ErrFinished) && !errors.Is(err, jobs.ErrRunning) && ctx.Err() == nil:
		return none(err)
	}
	out := jobKillOut{Job: jobOf(stopped.Job), Killed: err == nil}
	for _, p := range stopped.Outcome.Left {
		out.Survived = append(out.Survived, process{p.PID, p.Command})
	}
	out.Notices = c.told(ctx, r, stopped.Job)
	return out, nil
}

func (o jobKillOut) text() string {
	what := "ended"
	switch {
	case len(o.Survived) > 0:
		var names []string
		for _, p := range o.Survived {
			names = append(names, fmt.Sprintf("%d %s", p.PID, brief(p.Command)))
		}
		what = "these live on: " + strings.Join(names, "; ")
	case !o.Killed && (o.Job.PID != 0 || o.Job.Leftover):
		what = "it still runs: try again"
	case !o.Killed:
		what = "it had ended before"
	}
	return remarks(append([]string{what, o.Job.String()}, o.Notices...)...)
}
