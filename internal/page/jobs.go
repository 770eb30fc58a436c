package page

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/limpet-sh/limpet/jobs"
)

const (
	// mostJobs bounds the list of a session's jobs.
	mostJobs = 200

	// mostLog is how much of a job's output is in one answer, and lastLog where the first one begins, in bytes.
	mostLog = 256 << 10
	lastLog = 64 << 10
)

// jobJSON is one job of a list.
type jobJSON struct {
	ID        string     `json:"id"`
	Command   string     `json:"command"` // its beginning
	Dir       string     `json:"dir"`
	Session   string     `json:"session,omitempty"`
	State     jobs.State `json:"state"`
	Finished  bool       `json:"finished"`
	Failed    bool       `json:"failed"`         // finished otherwise than with exit code 0
	Exit      string     `json:"exit,omitempty"` // how it ended, in words
	Started   time.Time  `json:"started"`
	ElapsedMS int64      `json:"elapsed_ms"`
	Bytes     int64      `json:"bytes"` // that it has printed
}

func toJobJSON(j jobs.Job) jobJSON {
	out := jobJSON{
		ID: j.ID, Command: cut(j.Command, mostBrief), Dir: j.Dir, Session: j.Session, State: j.State, Finished: j.State.Finished(),
		Started: j.Started, ElapsedMS: j.Elapsed.Milliseconds(), Bytes: j.Output.End,
	}
	out.Failed = out.Finished && (j.Exit == nil || j.Exit.Code != 0)
	if j.Exit != nil {
		out.Exit = exitWords(*j.Exit)
	}
	return out
}

type jobsJSON struct {
	Jobs     []jobJSON `json:"jobs"`
	More     int       `json:"more"`     // older ones, which are left out
	Stopping bool      `json:"stopping"` // whether people may stop them
}

// jobsKey is that of the list of a session's jobs.
func jobsKey(as rights, of which) string { return "/api/jobs\x00" + of.key() + as.key() }

func (h *Handler) listJobs(ctx context.Context, as rights, of which) (any, error) {
	out := jobsJSON{Jobs: []jobJSON{}, Stopping: as.mayType(h.opts)}
	err := h.withJobs(ctx, of, func(all jobs.Handle, has func(jobs.Job) bool) error {
		list, err := all.List(jobs.Filter{All: true})
		list = slices.DeleteFunc(list, func(one jobs.Job) bool { return !has(one) })
		for _, one := range lastOf(list, mostJobs) {
			out.Jobs = append(out.Jobs, toJobJSON(one))
		}
		out.More = max(len(list)-mostJobs, 0)
		return err
	})
	return out, err
}

// withJob calls do with the jobs of a session for the sake of one, as withJobs. The error is jobs.ErrNotFound if the session does not have it.
func (h *Handler) withJob(ctx context.Context, of which, id string, do func(jobs.Handle) error) error {
	return h.withJobs(ctx, of, func(all jobs.Handle, has func(jobs.Job) bool) error {
		job, err := all.Get(id)
		if err == nil && !has(job) {
			err = fmt.Errorf("job %s: %w", id, jobs.ErrNotFound)
		}
		if err != nil {
			return err
		}
		return do(all)
	})
}

// withJobs calls do with the jobs of a session. They are out of reach when ctx ends, and when it returns. Among them are those that a
// session of its name has left before, which has excludes for a share.
func (h *Handler) withJobs(ctx context.Context, of which, do func(all jobs.Handle, has func(jobs.Job) bool) error) error {
	s, err := h.open(ctx, of)
	if err != nil {
		return err
	}
	defer s.Disconnect()
	defer context.AfterFunc(ctx, s.Disconnect)() // The methods of jobs take no context.
	all, err := s.Jobs()
	if err != nil {
		return err
	}
	err = do(all, func(one jobs.Job) bool { return of.has(s, one.Started) })
	if ctx.Err() != nil {
		return fmt.Errorf("asking for the jobs of session %q: %w", of.name, context.Cause(ctx))
	}
	return err
}

// logJSON is a part of what a job has printed.
type logJSON struct {
	Text     []byte `json:"text"` // as base64: it may be no UTF-8
	Offset   int64  `json:"offset"`
	Next     int64  `json:"next"`    // where the next part begins
	End      int64  `json:"end"`     // how much there is now
	Dropped  int64  `json:"dropped"` // bytes before the text that were asked for and are not kept
	Finished bool   `json:"finished"`
}

// serveLog answers with the output of a job from an offset on, and does not wait for more.
func (h *Handler) serveLog(w http.ResponseWriter, r *http.Request, as rights, of which, id string) {
	from, ok := number(w, r, "from")
	if !ok {
		return
	}
	if r.URL.Query().Get("from") == "" {
		from = -1
	}
	h.answered(w, r, as, fmt.Sprintf("log\x00%s\x00%s\x00%d", of.key(), id, from), func(ctx context.Context) (any, error) {
		var out logJSON
		err := h.withJob(ctx, of, id, func(all jobs.Handle) (err error) {
			out, err = readLog(ctx, all, id, from)
			return err
		})
		return out, err
	})
}

// readLog reads output by Follow, which leaves no trace: after Log, who has started the job is not told of its end any more.
// A negative offset means the last part.
func readLog(ctx context.Context, all jobs.Handle, id string, from int64) (logJSON, error) {
	job, err := all.Get(id)
	if err != nil {
		return logJSON{}, err
	}
	end := job.Output.End
	if from < 0 {
		from = max(job.Output.First, end-lastLog)
	}
	out := logJSON{Offset: from, Next: from, End: end, Finished: job.State.Finished()}
	if from >= end {
		return out, nil
	}
	for chunk, err := range all.Follow(ctx, id, from) {
		if err != nil {
			return out, err
		}
		if len(out.Text) == 0 {
			out.Dropped, out.Offset = chunk.Dropped, chunk.Offset
		} else if chunk.Dropped > 0 {
			break // It belongs before the next part.
		}
		out.Text = append(out.Text, chunk.Data...)
		out.Next = chunk.Offset + int64(len(chunk.Data))
		if out.Next >= end || len(out.Text) >= mostLog {
			break
		}
	}
	if extra := len(out.Text) - mostLog; extra > 0 {
		out.Text, out.Next = out.Text[:mostLog], out.Next-int64(extra)
	}
	return out, nil
}

// exitWords says how a job has ended.
func exitWords(e jobs.Exit) string {
	switch {
	case e.Why != "":
		return cut(e.Why, mostBrief)
	case e.Signal != 0:
		return "ended by signal " + strconv.Itoa(int(e.Signal))
	}
	return "exit code " + strconv.Itoa(e.Code)
}
