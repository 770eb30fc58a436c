package oneshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/capture"
	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// run is one command: start, wait, collect.
type run struct {
	r       *Runner
	req     command.Request
	env     []string // from here
	own     []string // of a process of the transport
	outputs capture.Outputs
	id      string
	started time.Time

	dir     string
	lastPID int // given out before the command was started
	conn    transport.Conn
	process proc.ID
	monitor *capture.Monitor
	input   *input // nil if there is none to be copied
}

func (c *run) run(ctx context.Context) (command.Result, error) {
	nothing := command.Result{ExitCode: command.CodeUnknown, Started: c.started, Dir: c.r.opts.Dir}
	if c.isLong() {
		defer rundir.Remove(c.scriptDir()) // Or it goes with the program's directory.
	}
	if err := c.start(ctx); err != nil {
		c.r.end(&c.outputs)
		return nothing, err
	}
	c.monitor = capture.NewMonitor(c.outputs, c.req.Stdout, c.req.Stderr)
	outcome, cause := c.wait(ctx)
	res, err := c.collect(ctx, cause)
	if cause != nil {
		stopped := interrupt.NewError(ctx, cause, outcome)
		res.ExitCode = stopped.ExitCode()
		return res, stopped
	}
	return res, err
}

// start starts bash with its output going to the captures.
func (c *run) start(ctx context.Context) (err error) {
	opts := &c.r.opts
	c.dir = c.req.Dir
	if !filepath.IsAbs(c.dir) {
		c.dir = filepath.Join(opts.Dir, c.dir)
	}
	if err := transport.CheckDir(c.dir); err != nil {
		return err
	}
	spec := transport.Spec{
		Path: opts.Bash, Dir: c.dir,
		Env: c.without(c.env),
		Own: slices.Concat(c.without(c.own), c.req.Env, []string{"PWD=" + c.dir, c.r.entry, c.mark()}),
	}
	if spec.Argv, err = c.argv(); err != nil {
		return err
	}
	if c.isLong() {
		spec.SessionDir = c.scriptDir()
	}
	if spec.Stdout, spec.Stderr, err = c.outputs.Files(); err != nil {
		return &ipc.DiskError{Dir: opts.RuntimeDir, Err: err}
	}
	defer spec.Stdout.Close() // The child has its own, and nothing was written here.
	if spec.Stderr != spec.Stdout {
		defer spec.Stderr.Close() // As above.
	}
	input, err := c.stdin(&spec)
	if err != nil {
		return err
	}
	defer input.Close()            // The child has its own.
	c.lastPID, _ = c.r.pids.Last() // 0: there is no telling here.
	if c.conn, err = opts.Transport.Start(ctx, spec); err != nil && ctx.Err() != nil {
		return limits.NotBegun(ctx)
	}
	if err != nil {
		return &transport.StartError{Argv: spec.Argv[:1], Code: -1, Err: err}
	}
	c.process = proc.ID{PID: c.conn.PID()}
	if st, err := proc.Read(c.process.PID); err == nil {
		c.process.Start = st.Start
	}
	c.feed(spec)
	return nil
}

// longestArg is below what Linux takes as one argument (execve(2): 32 pages).
const longestArg = 120 << 10

// isLong reports whether the script is too long for an argument. It may have to be quoted,
// which makes it four times as long at most.
func (c *run) isLong() bool {
	longest := longestArg
	if len(c.req.Unset) > 0 {
		longest /= 4
	}
	return len(c.req.Script) > longest
}

// argv is bash -c -- SCRIPT: behind -- no script is taken for an option. A script that
// is too long for an argument is read from a file by a bash -c that evals it.
func (c *run) argv() ([]string, error) {
	text := c.req.Script
	if c.isLong() {
		path := filepath.Join(c.scriptDir(), "script")
		if err := c.writeScript(path); err != nil {
			return nil, &ipc.DiskError{Dir: c.r.dir, Err: err}
		}
		// Bash (5.2) loses some bytes of a name that is written within $( ).
		text = ": " + script.Quote(path) + `; eval -- "$(<"$_")"`
	}
	if len(c.req.Unset) > 0 {
		// They are in no environment, but bash sets some itself (PATH, IFS).
		if !c.isLong() {
			text = "eval -- " + script.Quote(text) // A syntax error in it must say what it would without.
		}
		text = c.unset() + text
	}
	return []string{"bash", "--noprofile", "--norc", "-c", "--", text}, nil
}

func (c *run) writeScript(path string) error {
	if err := private.Mkdir(c.scriptDir()); err != nil {
		return err
	}
	if err := private.WriteFile(path, []byte(c.req.Script)); err != nil {
		return err
	}
	return c.r.owner.Give(path, c.scriptDir())
}

// unset is the command that unsets the variables of Request.Unset, but for those that
// Request.Env sets.
func (c *run) unset() string {
	var text strings.Builder
	for _, name := range c.req.Unset {
		set := slices.ContainsFunc(c.req.Env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
		if !set {
			text.WriteString("unset -v " + name + "; ")
		}
	}
	return text.String()
}

// without returns the environment without the variables of Request.Unset.
func (c *run) without(env []string) []string {
	if len(c.req.Unset) == 0 {
		return env
	}
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(c.req.Unset, name)
	})
}

// scriptDir holds a script that is too long, until the command has ended. It
// has nothing else in it: a sandbox shows it to the command. It is not in the
// Runner's own directory, which no other user can pass through.
func (c *run) scriptDir() string { return filepath.Join(c.r.program.Path, "script-"+c.id) }

// mark is the entry in the environment of all that the command starts.
func (c *run) mark() string { return ipc.CommandVar + "=" + c.id }

type nopCloser struct{}

func (nopCloser) Close() error { return nil }

// stdin sets what the command reads: a file as it is, a pipe that is fed, or
// nothing.
func (c *run) stdin(spec *transport.Spec) (io.Closer, error) {
	switch in := c.req.Stdin.(type) {
	case nil:
		null, err := os.Open(os.DevNull)
		spec.Stdin = null
		return null, err
	case *os.File:
		spec.Stdin = in
		return nopCloser{}, nil
	default:
		return nopCloser{}, nil // The transport makes a pipe.
	}
}

// feed copies a Reader into the pipe. The goroutine is not waited for: a Read
// that blocks longer than the command lives cannot be ended from here. A write
// ends with the pipe.
func (c *run) feed(spec transport.Spec) {
	if spec.Stdin != nil {
		return
	}
	c.input = &input{from: c.req.Stdin, failed: make(chan error, 1)}
	go func() {
		_, _ = io.Copy(patient{c.conn}, c.input) // A write fails if the command does not want it all.
		_ = c.conn.CloseStdin()                  // End of file for the command.
	}()
}

// input is the caller's Reader. It notes the error of it before the command can get the
// end of its input, and so before the command ends because of that.
type input struct {
	from   io.Reader
	failed chan error
}

func (in *input) Read(b []byte) (int, error) {
	n, err := in.from.Read(b)
	if err != nil && err != io.EOF { // As io.Copy has it: an error that wraps EOF is another one.
		select {
		case in.failed <- err:
		default: // It has failed before.
		}
	}
	return n, err
}

// err returns the error of the Reader, if it has failed by now. A nil input never fails.
func (in *input) err() error {
	if in == nil {
		return nil
	}
	select {
	case err := <-in.failed:
		return fmt.Errorf("oneshot: reading the command's stdin: %w", err)
	default:
		return nil
	}
}

// patient goes on where a Conn gives up waiting for its process to read: it may read
// later, or never. Close ends a write.
type patient struct{ conn transport.Conn }

func (p patient) Write(b []byte) (written int, err error) {
	for {
		var n int
		n, err = p.conn.Write(b[written:])
		if written += n; !errors.Is(err, os.ErrDeadlineExceeded) {
			return written, err
		}
	}
}

// wait waits for the command's end, or stops it.
func (c *run) wait(ctx context.Context) (outcome interrupt.Outcome, cause error) {
	limit := c.r.limitsOf(c.req, c.started)
	const firstTick = 2 * time.Millisecond
	tick := time.NewTimer(limit.Next(firstTick, 0))
	defer tick.Stop()
	for {
		select {
		case <-c.conn.Done():
			return outcome, nil
		case <-ctx.Done():
			cause = context.Cause(ctx)
		case <-tick.C:
			again := c.monitor.Look()
			cause = limit.Exceeded(c.monitor.Quiet())
			tick.Reset(limit.Next(again, c.monitor.Quiet()))
		}
		if cause == nil {
			continue
		}
		select {
		case <-c.conn.Done(): // It ended by itself: that wins.
			return outcome, nil
		default:
			outcome = interrupt.Stop(c.ladder(), target{c})
			outcome.OwnBash = true
			return outcome, cause
		}
	}
}

// writerPatience is how long Writers are waited for when the command was stopped
// or the caller has given up.
const writerPatience = time.Second

func (c *run) collect(ctx context.Context, cause error) (command.Result, error) {
	_ = c.conn.Close() // It has ended; its stdin may be broken.
	res := command.Result{Started: c.started, Dir: c.r.opts.Dir}
	res.Receipt.Leftover = c.leftover()
	if len(res.Receipt.Leftover) > 0 && cause == nil && c.mayLeaveWriters() {
		res.Receipt.Leftover = c.monitor.AwaitSubstitutions(ctx, res.Receipt.Leftover, c.leftover)
	}
	diskErr := c.monitor.Full()
	writeErr := c.monitor.Finish(ctx, cause != nil, writerPatience)
	var readErr error
	res.Stdout, res.Stderr, readErr = c.outputs.Read(c.r.opts.OutputLimit)
	if errors.Is(writeErr, ipc.ErrWriterStuck) {
		c.outputs.Abandon()
	} else {
		c.r.end(&c.outputs)
	}
	res.Elapsed = time.Since(c.started)
	c.receipt(&res)
	if res.ExitCode != 0 {
		res.Denied = transport.DeniedBy(c.conn, res.ExitCode, res.Stderr.Bytes(), res.Stdout.Bytes())
	}
	return res, errors.Join(diskErr, readErr, writeErr, c.input.err())
}

func (c *run) receipt(res *command.Result) {
	exit := c.conn.Exit()
	res.ExitCode = exit.Code
	if exit.Signal != 0 {
		res.ExitCode = 128 + int(exit.Signal)
	}
	if res.ExitCode > 128 && res.ExitCode < 128+65 {
		res.Receipt.Signal = syscall.Signal(res.ExitCode - 128)
	}
	if exit.Rusage != nil {
		res.Receipt.User = time.Duration(exit.Rusage.Utime.Nano())
		res.Receipt.System = time.Duration(exit.Rusage.Stime.Nano())
	}
}

// leftover are the processes that the command has left running.
func (c *run) leftover() (found []command.Process) {
	candidates, _, _ := c.r.pids.Since(c.lastPID) // None where there is no telling.
	for _, st := range candidates {
		if !st.Zombie() && (st.SID == c.process.PID || st.Carries(c.mark())) {
			found = append(found, command.Process{PID: st.PID, Start: st.Start, Command: proc.Command(st.PID)})
		}
	}
	return found
}

// mayLeaveWriters reports whether process substitutions of the script may still write.
func (c *run) mayLeaveWriters() bool {
	t := script.Read(c.req.Script).Traits(nil)
	return t.OutputSubstitution || t.Unknown || t.Unreadable
}

// ladder is how the command is stopped.
func (c *run) ladder() interrupt.Ladder {
	if len(c.req.Ladder) > 0 {
		return c.req.Ladder
	}
	return c.r.opts.Ladder
}

// target is the command for the ladder. There is no shell that must survive:
// bash is one of the processes to be stopped.
type target struct{ c *run }

func (t target) Shell() proc.ID             { return proc.ID{} }
func (t target) SignalShell(syscall.Signal) {}
func (t target) Started(proc.Stat) bool     { return true }
func (t target) EndsWithChild() bool        { return false }
func (t target) Traps() bool                { return false }
func (t target) Fork(proc.Stat) bool        { return false }

func (t target) Back(wait time.Duration) (back, dead bool) {
	t.c.monitor.Look() // A command that is being stopped may still write without end.
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-t.c.conn.Done():
		return false, true
	case <-timer.C:
		return false, false
	}
}

// Members are bash, what is below it, and what carries the command's mark.
func (t target) Members() []proc.Stat {
	tree, err := proc.Snapshot()
	if err != nil {
		return nil
	}
	members := tree.Session(t.c.process, t.c.mark())
	if bash, ok := tree.Get(t.c.process); ok && !bash.Zombie() {
		members = append(members, bash)
	}
	return members
}
