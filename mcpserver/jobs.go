package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/transport"
)

// jobOut is a job as answers have it.
type jobOut struct {
	Job            string    `json:"job" jsonschema:"Its id."`
	Command        string    `json:"command" jsonschema:"Of a long one, the beginning."`
	Session        string    `json:"session"`
	Dir            string    `json:"dir" jsonschema:"Where it was started."`
	State          string    `json:"state" jsonschema:"exited: see exit_code or signal; failed: it could not be started; lost: it has ended, and nobody saw how." enum:"starting,running,ending,exited,failed,lost"`
	ExitCode       *int      `json:"exit_code,omitempty" jsonschema:"Left out while it runs, if a signal ended it, and if it is not known."`
	Signal         string    `json:"signal,omitempty" jsonschema:"The signal that ended it."`
	StoppedBy      string    `json:"stopped_by,omitempty" jsonschema:"timeout: its own; stop: job_kill, or the end of its session; program, shutdown: the end of the server." enum:"timeout,stop,program,shutdown"`
	Why            string    `json:"why,omitempty" jsonschema:"Why it failed, or how it was lost."`
	PID            int       `json:"pid,omitempty" jsonschema:"Of its bash, while it runs."`
	Started        time.Time `json:"started"`
	ElapsedSeconds float64   `json:"elapsed_seconds" jsonschema:"Until it ended, or until now; 0 if it is lost, and not known when."`
	QuietSeconds   float64   `json:"quiet_seconds" jsonschema:"For how long it has printed nothing; 0 when it has ended."`
	OutputBytes    int64     `json:"output_bytes" jsonschema:"How much it has printed in all."`
	Waits          string    `json:"waits,omitempty" jsonschema:"What it waits for that is to be typed on its terminal."`
	Leftover       bool      `json:"leftover,omitempty" jsonschema:"Processes that it has started run on after its end; job_kill ends them."`
	Warnings       []string  `json:"warnings,omitempty"`
}

// longestCommand bounds what answers have of a command: a script may have 1 MB.
const longestCommand = 500

func jobOf(job jobs.Job) *jobOut {
	out := &jobOut{
		Job: job.ID, Command: job.Command, Session: job.Session, Dir: job.Dir, State: string(job.State), PID: job.PID, Started: job.Started,
		ElapsedSeconds: rounded(job.Elapsed), QuietSeconds: rounded(job.Quiet), OutputBytes: job.Output.End,
		Leftover: job.Leftover, Warnings: job.Warnings,
	}
	if len(out.Command) > longestCommand {
		out.Command = out.Command[:runes.Whole([]byte(out.Command[:longestCommand]))] + "…"
	}
	if job.Waits != nil {
		out.Waits = job.Waits.String()
	}
	if lost := job.Output.Lost; lost > 0 {
		out.Warnings = append(out.Warnings, fmt.Sprintf("the disk had no room for %d bytes of its output", lost))
	}
	if len(job.Orphans) > 0 {
		var names []string
		for _, p := range job.Orphans {
			names = append(names, fmt.Sprintf("%d %s", p.PID, brief(p.Command)))
		}
		out.Warnings = append(out.Warnings, fmt.Sprintf("its supervisor was killed, so its output is lost since then; %d of its processes still run, and job_kill ends them: %s", len(names), strings.Join(names, "; ")))
	}
	if exit := job.Exit; exit != nil {
		if exit.Code >= 0 {
			out.ExitCode = &exit.Code
		}
		if exit.Signal != 0 {
			out.Signal = transport.SignalName(exit.Signal)
		}
		out.StoppedBy, out.Why = exit.Stopped, exit.Why
	}
	return out
}

// howStopped says how a job was stopped, in words.
var howStopped = map[string]string{
	jobs.ByTimeout: "at its timeout", jobs.ByRequest: "on request", jobs.ByProgram: "at the end of the server", jobs.ByShutdown: "at the end of the server",
}

// String is a job in a line.
func (j *jobOut) String() string {
	parts := []string{j.Job + ": " + j.State}
	if j.Why != "" {
		parts[0] += " (" + j.Why + ")"
	}
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if j.ExitCode != nil {
		add("exit code %d", *j.ExitCode)
	}
	if j.Signal != "" {
		add("%s", j.Signal)
	}
	if j.StoppedBy != "" {
		add("stopped %s", howStopped[j.StoppedBy])
	}
	if j.PID != 0 {
		add("pid %d", j.PID)
		add("for %v s, quiet for %v s", j.ElapsedSeconds, j.QuietSeconds)
	} else if j.ElapsedSeconds > 0 || j.State != string(jobs.Lost) {
		add("after %v s", j.ElapsedSeconds)
	}
	add("%d bytes of output", j.OutputBytes)
	if j.Waits != "" {
		add("%s", j.Waits)
	}
	if j.Leftover {
		add("processes that it has started run on")
	}
	for _, w := range j.Warnings {
		add("%s", w)
	}
	if j.Session != "" {
		add("session %s", j.Session)
	}
	add("in %s", j.Dir)
	return strings.Join(parts, ", ") + ": " + brief(j.Command)
}

func (s *Server) addJobs() {
	add(s, tool[jobListIn, jobListOut]{
		name: "job_list", title: "List jobs", effect: looks, call: listJobs,
		example: `{"state": "running"}`,
		description: "List background jobs, the oldest first: what they run, whether they still do, how they ended. It is cheap, and returns no output. " +
			"Jobs are started by run_command with background: true. One that has ended can be looked at for a while.",
	})
	add(s, tool[jobPollIn, jobPollOut]{
		name: "job_poll", title: "See what a job has printed since", effect: looks, call: pollJob,
		example: `{"job": "job-make-4a7c"}`,
		description: "Say how a job is, and return what it has printed since the last job_poll of it. It returns at once: to wait for something, job_wait is better than to poll again and again. " +
			"All callers share what counts as the last; with since, an offset of yours counts, and nothing is remembered. It is cheap. stdout and stderr are one.",
	})
	add(s, tool[jobLogIn, jobLogOut]{
		name: "job_log", title: "Read a job's log", effect: looks, check: (*Server).checkJobLog, call: logOfJob,
		example: `{"job": "job-make-4a7c", "tail_lines": 20}`,
		description: "Read any part of what a job has printed: the last lines (the default), the first ones, lines by number, bytes by offset, or the lines that match a pattern. " +
			"It does not change what job_poll returns next. Of a long log the end is kept, of 200 KiB at least; offsets and line numbers count from the beginning all the same. It is cheap, but returns 16 KiB unless you ask for less.",
	})
	add(s, tool[jobWaitIn, jobWaitOut]{
		name: "job_wait", title: "Wait for a job", effect: looks, check: (*Server).checkJobWait, call: waitForJob,
		example: `{"jobs": ["job-make-4a7c"], "timeout_seconds": 60}`,
		description: fmt.Sprintf("Wait until a job has ended, or, if that comes first, until it prints a line that matches, falls silent, or a port is open. "+
			"Use it after starting a server (pattern or port) and for builds and tests (their end). It takes as long as that takes, at most timeout_seconds (%v if you do not say; up to %v), which is no error: the job runs on, and you can wait again.",
			min(defaultJobWait, s.opts.MaxTimeout), s.opts.MaxTimeout),
	})
	add(s, tool[jobIn, jobKillOut]{
		name: "job_kill", title: "End a job", effect: destroys, call: killJob,
		example:     `{"job": "job-make-4a7c"}`,
		description: "End a job with all processes that it has started: first by an interrupt, at last by SIGKILL. It returns when that is done, which takes some seconds at most. What the job has printed can still be read.",
	})
	add(s, tool[jobWriteIn, jobWriteOut]{
		name: "job_write", title: "Write to a job", effect: runs, call: writeToJob,
		example:     `{"job": "job-make-4a7c", "text": "yes\n"}`,
		description: "Write text to a job's standard input, as it is. The job must have been started with keep_stdin_open: true. It returns when the text is taken, not when the job has answered: job_wait with a pattern or silence_seconds sees that.",
	})
	add(s, tool[jobWriteIn, jobDoneOut]{
		name: "job_submit", title: "Write a line to a job", effect: runs, call: submitToJob,
		example:     `{"job": "job-make-4a7c", "text": "yes"}`,
		description: "Write a line to a job's standard input: the text, and a newline. Else it is job_write. For programs that want a terminal, use terminal_create and terminal_send_keys instead.",
	})
	add(s, tool[jobIn, jobDoneOut]{
		name: "job_close", title: "End a job's input", effect: destroys, call: closeJob,
		example:     `{"job": "job-make-4a7c"}`,
		description: "Let a job read end-of-file on its standard input, behind what was written: filters and interpreters end by that. Nothing can be written to it afterwards. It does not wait for the job.",
	})
}

// jobIn is what tools are asked that need a job alone.
type jobIn struct {
	Job string `json:"job" jsonschema:"The id of the job, as run_command and job_list return it."`
}

// told is what else there is to tell with an answer about a job: what has happened in its
// session. That the job has ended is in the answer, and not told again. The registry of jobs takes it for told by now, so
// saw comes first: if the call is cancelled, it is put back.
func (c *call) told(ctx context.Context, r *jobs.Registry, job jobs.Job) []string {
	c.saw(r, job)
	if ctx.Err() != nil {
		return nil // Nobody may read it.
	}
	return c.noticesOf(job.Session)
}

// saw takes back the notice of a job's end, also one that is just being written.
func (c *call) saw(r *jobs.Registry, job jobs.Job) {
	if !job.State.Finished() {
		return
	}
	_, _ = r.Poll(job.ID, &jobs.PollOptions{Lines: -1, Bytes: 1, Since: &job.Output.End}) // It may be forgotten.
	c.seen(job.ID)
}

// noticesOf takes those of a session, if it is there.
func (c *call) noticesOf(session string) []string {
	sess, err := c.server.sessions.Get(session)
	if err != nil {
		return nil
	}
	return c.notices(sess)
}

// noJob says which jobs there are, if the error is that there is not the one that was
// asked for.
func (c *call) noJob(r *jobs.Registry, id string, err error) error {
	if !errors.Is(err, jobs.ErrNotFound) {
		return err
	}
	const most = 10
	list, err := r.List(jobs.Filter{})
	switch {
	case err != nil:
		return err
	case len(list) == 0:
		return fmt.Errorf("there is no job %q: there are no jobs; run_command with background: true starts one", id)
	}
	more := ""
	if len(list) > most {
		more = fmt.Sprintf(", and %d older ones (job_list has them)", len(list)-most)
		list = list[len(list)-most:]
	}
	var ids []string
	for _, job := range list {
		ids = append(ids, fmt.Sprintf("%s (%s)", job.ID, job.State))
	}
	return fmt.Errorf("there is no job %q: it never was, or ended a while ago and was forgotten; there are %s%s", id, strings.Join(ids, ", "), more)
}

// remarks are the last lines of a text for a model.
func remarks(lines ...string) string {
	var text strings.Builder
	for _, line := range lines {
		if line != "" {
			text.WriteString("\n[" + line + "]")
		}
	}
	return strings.TrimPrefix(text.String(), "\n")
}

// body is output in such a text.
func body(output string) string {
	if output == "" {
		return ""
	}
	return strings.TrimSuffix(output, "\n") + "\n"
}
