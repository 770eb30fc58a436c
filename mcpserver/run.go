package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// runIn is what run_command is asked.
type runIn struct {
	Command        string   `json:"command" jsonschema:"What bash runs: one line or many, as in a script."`
	Session        string   `json:"session,omitempty" jsonschema:"The session to run it in; it is made if there is none of that name. Commands of one session run one at a time, those of others beside them. Default: default."`
	TimeoutSeconds float64  `json:"timeout_seconds,omitempty" jsonschema:"Stop it after so many seconds (see on_timeout). For a background job: default none." min:"0.001"`
	IdleTimeout    float64  `json:"idle_timeout_seconds,omitempty" jsonschema:"Stop it when it has printed nothing for so many seconds. Default: none." min:"0.001"`
	Stdin          *string  `json:"stdin,omitempty" jsonschema:"Text that it reads on standard input, which is empty otherwise. It then runs in a bash of its own, with the session's directory and exported variables and none of its functions: what it changes (cd, variables) is not kept."`
	Dir            string   `json:"dir,omitempty" jsonschema:"Run it in this directory, for this command alone; relative to the session's. To stay there, use cd."`
	MergeStderr    *bool    `json:"merge_stderr,omitempty" jsonschema:"Whether stderr is in stdout, in the order in which it was written. The default is in the description."`
	MaxOutput      int      `json:"max_output_bytes,omitempty" jsonschema:"How much output to return; of more, the beginning and the end. Default: see the description." min:"256" max:"32768"`
	Raw            bool     `json:"raw,omitempty" jsonschema:"Keep escape sequences and carriage returns."`
	Background     bool     `json:"background,omitempty" jsonschema:"Start it as a background job and return as soon as it runs: for servers, watchers and long builds. It has the directory and the exported variables that the session has when the command that runs there has ended, but not its functions, and changes nothing there. See job_poll, job_wait."`
	OnTimeout      string   `json:"on_timeout,omitempty" jsonschema:"What a timeout does: stop the command, or move it to the background, where it runs on as a job. The default is in the description." enum:"stop,background"`
	Watch          []string `json:"watch,omitempty" jsonschema:"With background: regular expressions (RE2); a line that matches is told with the next answer of the session."`
	KeepStdinOpen  bool     `json:"keep_stdin_open,omitempty" jsonschema:"With background: let job_write, job_submit and job_close reach its standard input."`
	Restart        bool     `json:"restart,omitempty" jsonschema:"Stop what runs in the session, and bring it back to the state after its start, before the command, if there is one." hidden:"true"`

	defaulted bool // TimeoutSeconds is the default
}

// runOut is what run_command returns.
type runOut struct {
	ResultID  string `json:"result_id,omitempty" jsonschema:"For read_output."`
	Session   string `json:"session"`
	Status    string `json:"status" jsonschema:"exited; stopped (see stopped_by); background (see job); died: its bash was killed, and it is not known how the command ended; restarted: no command was given." enum:"exited,stopped,background,died,restarted"`
	ExitCode  *int   `json:"exit_code,omitempty" jsonschema:"As bash has it: 128+n for signal n; 124 after a timeout, 130 when it was interrupted."`
	Signal    string `json:"signal,omitempty"`
	StoppedBy string `json:"stopped_by,omitempty" enum:"timeout,idle_timeout,cancelled,interrupted,closed"`

	Stdout        string `json:"stdout"`
	Stderr        string `json:"stderr"`
	StdoutBytes   int64  `json:"stdout_bytes" jsonschema:"How much it printed in all."`
	StderrBytes   int64  `json:"stderr_bytes"`
	StdoutOmitted int64  `json:"stdout_omitted,omitempty" jsonschema:"How much of that is not in stdout."`
	StderrOmitted int64  `json:"stderr_omitted,omitempty"`
	Binary        bool   `json:"binary,omitempty" jsonschema:"It printed something that is no text."`

	Dir            string      `json:"dir" jsonschema:"The session's directory afterwards."`
	ElapsedSeconds float64     `json:"elapsed_seconds"`
	Job            *jobOut     `json:"job,omitempty"`
	Leftover       []process   `json:"leftover,omitempty" jsonschema:"Processes that it left running."`
	NotKept        []string    `json:"not_kept,omitempty" jsonschema:"What it changed and the session does not have: descriptors that it opened, jobs as jobs, of a command that may end its shell."`
	Restart        *restartOut `json:"restart,omitempty" jsonschema:"The session's bash ended, and was replaced."`
	Hint           string      `json:"hint,omitempty"`
	Notices        []string    `json:"notices,omitempty" jsonschema:"What else has happened in the session: jobs that ended, for one."`

	WaitedSeconds float64 `json:"waited_seconds,omitempty" jsonschema:"How long it waited for its turn."`
	WaitedFor     string  `json:"waited_for,omitempty" jsonschema:"The command that ran in the session meanwhile."`

	named   string // what the session is called where it is news
	moved   bool   // Dir is news
	changed bool   // raw would have shown more
}

// How a command can have ended: runOut.Status.
const (
	statusExited     = "exited"
	statusStopped    = "stopped"
	statusBackground = "background"
	statusDied       = "died"
	statusRestarted  = "restarted"
)

type process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
}

type restartOut struct {
	Reason   string   `json:"reason"`
	Restored []string `json:"restored,omitempty"`
	Lost     []string `json:"lost,omitempty"`

	text string // the same, for a model
}

func (s *Server) addShell() {
	var told map[string]string
	if s.sessions.StdinInShell() {
		told = map[string]string{"stdin": "Text that it reads on standard input, which is empty otherwise."}
	}
	add(s, tool[runIn, runOut]{
		name: "run_command", title: "Run a command", arguments: told, effect: runs, check: (*Server).checkRun, call: runCommand,
		example: fmt.Sprintf(`{"command": "make -j4", "timeout_seconds": %v}`, min(600, s.opts.MaxTimeout.Seconds())),
		description: fmt.Sprintf("Run a shell command in bash and return its output and exit code: tests, builds, git, scripts; with background: true start a dev server, "+
			"a watcher or another background process. The session keeps directory, variables and functions from call to call; set -e, -u, -x end with the command. "+
			"Standard input is empty, and there is no terminal: for what wants one, terminal_create. An exit code that is not 0 is a result, and no error. "+
			"%s unless timeout_seconds and on_timeout say otherwise (at most %v). Output is plain text, %s; above %d bytes or %d lines its middle is left out, and read_output has it.",
			s.atTimeout(), s.opts.MaxTimeout, s.ofStderr(), s.opts.AnswerLimit, mostLines),
		always: true,
	})
	add(s, tool[readIn, readOut]{
		name: "read_output", title: "Read more of a command's output", effect: looks, check: (*Server).checkRead, call: readOutput,
		example: `{"result_id": "r7-x3kq", "offset": 8192}`,
		description: fmt.Sprintf("Read more of what an earlier run_command printed, by its result_id: a range of bytes, the last lines, or the lines that match a pattern. "+
			"It is cheap, and runs nothing. It returns %d bytes at most unless you ask otherwise. The last %d results of all sessions are kept, of a long output its beginning and end.", s.opts.AnswerLimit, mostResults),
		always: true,
	})
	add(s, tool[interruptIn, interruptOut]{
		name: "interrupt", title: "Interrupt a session", effect: destroys, call: interruptSession,
		example: `{"session": "default"}`,
		description: "Stop the command that runs in a session now, as Ctrl-C does; its run_command returns what there was. The session and its state stay. " +
			"Background jobs and terminals are not touched.",
	})
}

// atTimeout says what becomes of a command that takes long.
func (s *Server) atTimeout() string {
	if s.opts.OnTimeout == onTimeoutBackground {
		return fmt.Sprintf("After %v it is moved to the background, where it runs on as a job,", s.opts.Timeout)
	}
	return fmt.Sprintf("It is stopped after %v", s.opts.Timeout)
}

// ofStderr says where stderr is.
func (s *Server) ofStderr() string {
	if s.opts.Structured {
		return "with stderr apart unless merge_stderr says otherwise"
	}
	return "with stderr where it was written unless merge_stderr says otherwise"
}

const defaultSession = "default"

// runCommand runs a command, or starts it in the background.
func runCommand(ctx context.Context, c *call, in runIn) (runOut, error) {
	none := func(err error) (runOut, error) { return runOut{}, err }
	sess, err := c.server.sessions.Open(ctx, in.Session, nil)
	if err != nil {
		return none(refused(err))
	}
	if in.Restart {
		if out, err := c.restarted(ctx, sess, in); err != nil || in.Command == "" {
			return out, err
		}
	}
	if in.Background {
		return startBackground(ctx, c, sess, in)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	own := &queued{session: in.Session, command: in.Command, result: c.server.results.next(), client: c.request.Session, cancel: cancel}
	own.caller = cmp.Or(runes.Brief(Caller{c}.Client(), mostClient), "an agent") + " by limpet mcp, result " + own.result
	ahead, _ := c.server.queues.first(in.Session)
	c.server.queues.doubt(in.Session, own.client, c.server.opts.Answer-c.server.opts.TurnTimeout)
	c.server.queues.begin(own)
	defer c.server.queues.end(own)
	called := time.Now()
	last := &lastLine{}
	stop := c.progress(ctx, func() string {
		if info, _ := sess.Info(ctx); !own.runs(info) {
			return behind(info)
		}
		return last.String()
	})
	var other atomic.Pointer[session.Info] // what another caller runs
	look := time.AfterFunc(worthWaiting/2, func() {
		if info, _ := sess.Info(ctx); info.Running != "" && !own.runs(info) {
			other.Store(&info)
		}
	})
	defer look.Stop()
	res, err := sess.Do(ctx, c.requestOf(in, own, last))
	if errors.Is(err, sandbox.ErrViolation) {
		// It did not run. What the command before it did is told by a notice, and concerns people;
		// the sandbox protects by now what was made.
		res, err = sess.Do(ctx, c.requestOf(in, own, last))
	}
	stop()
	doubted := c.server.queues.end(own)
	if errors.Is(err, shell.ErrBusy) {
		return none(c.busy(ctx, sess))
	}
	out, err := c.server.ran(in, own.result, res, err)
	if err != nil {
		if res.Restart != nil {
			sess.Notify("the session's bash ended, and was replaced: " + res.Restart.String())
		}
		return none(err)
	}
	if out.Job != nil {
		c.server.followed.changed()
	}
	if waited := res.Started.Sub(called); waited >= worthWaiting {
		if info := other.Load(); ahead.command != "" {
			out.WaitedSeconds, out.WaitedFor = rounded(waited), brief(ahead.command)
		} else if info != nil {
			out.WaitedSeconds, out.WaitedFor = rounded(waited), held(*info)
		}
	}
	var once sync.Once
	tell := func(format string) {
		once.Do(func() { sess.Notify(fmt.Sprintf(format, brief(in.Command), out.end(), out.ResultID)) })
	}
	unread := func() { tell("a call was cancelled (%s): its command %s, and result %s has what it printed") }
	if ctx.Err() != nil || c.server.queues.hasLeft(own) { // Nobody may read it.
		unread()
		return out, nil
	}
	if info, err := sess.Info(ctx); err == nil { // Else the answer counts all the same.
		out.named, out.moved = c.place(info)
	}
	out.Notices = c.notices(sess)
	if doubted {
		tell("the command of an earlier call (%s) %s: result %s has what it printed")
	}
	c.ifUnread(unread)
	return out, nil
}

// mostClient bounds what a client calls itself, where others are told of it.
const mostClient = 100

// worthWaiting is how long a command has waited for its turn if that is told.
const worthWaiting = time.Second

// restarted has a session begin anew, as the tool bash of other servers does. Its jobs and
// terminals stay.
func (c *call) restarted(ctx context.Context, sess *session.Session, in runIn) (runOut, error) {
	_, err := sess.Interrupt(ctx)
	if err == nil {
		err = sess.Reset(ctx)
	}
	if err != nil {
		return runOut{}, refused(err)
	}
	info, err := sess.Info(ctx)
	if err != nil {
		return runOut{}, refused(err)
	}
	c.place(info)
	return runOut{Session: in.Session, Status: statusRestarted, Dir: info.Dir, moved: true}, nil
}

// requestOf is the request of a call. A client that gives up soon gets its answer before that, while
// the command runs on as a job; one with stdin, which cannot, is stopped.
func (c *call) requestOf(in runIn, own *queued, last *lastLine) command.Request {
	req := command.Request{
		Script: in.Command, Caller: own.caller, Dir: in.Dir, MergeStderr: *in.MergeStderr, Timeout: seconds(in.TimeoutSeconds), IdleTimeout: seconds(in.IdleTimeout),
		HandOver: in.OnTimeout == onTimeoutBackground, Stdout: last, Stderr: last, TurnTimeout: c.server.opts.TurnTimeout,
	}
	soon, hurried := c.hurried()
	soon = max(soon-req.TurnTimeout, soon/2) // It may have had to wait for its turn.
	if c.server.sessions.Approves() {
		soon /= 2 // Or for a person.
	}
	if in.Stdin != nil {
		req.Stdin, c.stdin = strings.NewReader(*in.Stdin), *in.Stdin
	}
	switch {
	case !hurried || req.Timeout <= soon:
	case req.Stdin != nil:
		req.Timeout = soon
	case req.HandOver:
		req.Timeout = soon
	default:
		req.HandOverAfter = soon
		if in.defaulted { // The default limits a call that waits. A job has no limit unless the call names one.
			req.Timeout = -1
		}
	}
	return req
}

// hurried reports whether the client asks for no progress, and how soon it is to be answered then.
func (c *call) hurried() (within time.Duration, is bool) {
	return c.server.opts.Answer, c.request.Params.GetProgressToken() == nil
}

// ran makes an answer of what came of a command. An error means that nothing ran.
func (s *Server) ran(in runIn, id string, res command.Result, err error) (runOut, error) {
	out := runOut{Session: in.Session, Status: statusExited, Dir: res.Dir, ElapsedSeconds: rounded(res.Elapsed)}
	if res.Denied != "" {
		out.Hint = s.opts.Explain(errors.New(res.Denied))
	}
	background, handed := errors.AsType[*session.BackgroundError](err)
	stopped, interrupted := errors.AsType[*shell.InterruptError](err)
	_, died := errors.AsType[*shell.DeadError](err)
	switch {
	case handed:
		out.Status, out.Job = statusBackground, jobOf(background.Job)
		out.Hint = "it runs on as a job: see job_poll, job_wait and job_kill; the session goes on in another bash, with the state that it had before this command"
	case interrupted && !stopped.NothingRan:
		out.Status, out.StoppedBy = statusStopped, stoppedBy(stopped)
		if out.StoppedBy != "closed" { // Then nothing of the session is left.
			out.Hint = stopped.Outcome.String()
			if stopped.Cause.Error() != shell.ErrInterrupted.Error() && out.StoppedBy == "interrupted" {
				out.Hint = s.opts.Explain(stopped.Cause) + "; " + out.Hint
			}
		}
		if error(stopped) != err { // It could not be moved to the background.
			out.Hint = strings.ReplaceAll(s.opts.Explain(err), "\n", "; ")
		}
	case died:
		out.Status, out.Hint = statusDied, s.opts.Explain(err)
	case err != nil && res.Elapsed == 0:
		return out, refused(err)
	case err != nil:
		out.Hint = s.opts.Explain(err) // It ran, and something is missing of what it wrote.
	}
	if res.ExitCode != command.CodeUnknown {
		out.ExitCode = &res.ExitCode
	}
	if res.Receipt.Signal != 0 {
		out.Signal = transport.SignalName(res.Receipt.Signal)
	}
	for _, p := range res.Receipt.Leftover {
		out.Leftover = append(out.Leftover, process{p.PID, p.Command})
	}
	out.NotKept = res.Receipt.NotKept
	if res.Restart != nil {
		out.Restart = restartOf(res.Restart)
	}
	out.ResultID = id
	s.results.keep(id, res, *in.MergeStderr)
	s.showStreams(&out, in, res)
	return out, nil
}

func restartOf(r *command.Restart) *restartOut {
	out := &restartOut{r.Reason, r.Restored, r.Lost, r.String()}
	if r.Err != nil {
		out.Lost = append(slices.Clone(out.Lost), "bash itself: "+r.Err.Error())
	}
	return out
}

// showStreams puts what was printed into the answer. What stderr does not need is
// stdout's, and the other way round.
func (s *Server) showStreams(out *runOut, in runIn, res command.Result) {
	limit := func(other command.Output) int {
		return in.MaxOutput - int(min(other.Total, int64(in.MaxOutput/2)))
	}
	get := func(stream string) func(int64) string {
		return func(offset int64) string {
			return fmt.Sprintf("read_output with result_id %q, stream %q and offset %d", out.ResultID, stream, offset)
		}
	}
	stdout, stderr := show(res.Stdout, limit(res.Stderr), in.Raw, get("stdout")), show(res.Stderr, limit(res.Stdout), in.Raw, get("stderr"))
	out.Stdout, out.StdoutBytes, out.StdoutOmitted = stdout.text, res.Stdout.Total, stdout.omitted
	out.Stderr, out.StderrBytes, out.StderrOmitted = stderr.text, res.Stderr.Total, stderr.omitted
	out.Binary = stdout.binary || stderr.binary
	out.changed = !in.Raw && (stdout.changed || stderr.changed)
}

func stoppedBy(e *shell.InterruptError) string {
	switch {
	case errors.Is(e, shell.ErrIdle):
		return "idle_timeout"
	case errors.Is(e, shell.ErrTimeout), errors.Is(e, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(e, shell.ErrClosed):
		return "closed"
	case errors.Is(e, shell.ErrInterrupted):
		return "interrupted"
	}
	return "cancelled"
}
