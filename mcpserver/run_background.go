package mcpserver

import (
	"context"
	"fmt"
	"time"

	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
)

// startBackground starts a job.
func startBackground(ctx context.Context, c *call, sess *session.Session, in runIn) (runOut, error) {
	none := func(err error) (runOut, error) { return runOut{}, err }
	if err := c.turn(ctx, sess); err != nil {
		return none(err)
	}
	if in.Stdin != nil {
		c.stdin = *in.Stdin
	}
	stop := c.waits(ctx, sess)
	job, err := sess.StartJob(ctx, jobs.Spec{
		Lifetime: c.server.lifetime(ctx, sess), Command: in.Command, Dir: in.Dir, Stdin: in.KeepStdinOpen || in.Stdin != nil,
		Watch: in.Watch, Notify: len(in.Watch) == 0, Timeout: seconds(in.TimeoutSeconds),
	})
	stop()
	if err != nil {
		return none(refused(err))
	}
	c.server.followed.changed()
	c.ifUnread(func() {
		sess.Notify(fmt.Sprintf("a call was cancelled that has started job %s (%s)", job.ID, brief(job.Command)))
	})
	out := runOut{Session: in.Session, Status: statusBackground, Dir: job.Dir, Job: jobOf(job), Notices: c.notices(sess)}
	if info, err := sess.Info(ctx); err == nil { // The job runs all the same.
		out.named, _ = c.place(info)
	}
	if in.Stdin != nil {
		if err := c.server.feed(job.ID, *in.Stdin, !in.KeepStdinOpen); err != nil {
			out.Hint = "its standard input: " + c.server.opts.Explain(err)
		}
	}
	return out, nil
}

// lifetime is that of jobs: with RunOn they live on when the program is killed, or hands its sessions on. In a sandbox
// that cannot be.
func (s *Server) lifetime(ctx context.Context, sess *session.Session) jobs.Lifetime {
	if info, err := sess.Info(ctx); s.opts.RunOn && err == nil && info.Policy == "" {
		return jobs.Detached
	}
	return jobs.WithProgram
}

// feed writes what a job reads, and ends that if nothing more comes.
func (s *Server) feed(id, text string, end bool) error {
	r, err := s.sessions.Jobs()
	if err != nil {
		return err
	}
	if _, err = r.Write(id, []byte(text)); err == nil && end {
		err = r.CloseStdin(id)
	}
	return err
}

// rounded is a time in seconds, to the millisecond. Seconds would add two numbers, and 1.614
// be 1.6139999999999999.
func rounded(d time.Duration) float64 {
	return float64(d.Round(time.Millisecond).Milliseconds()) / 1000
}
