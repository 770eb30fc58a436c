package oneshot

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rundir"
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
	outputs ipc.Outputs
	id      string
	started time.Time

	dir     string
	lastPID int // given out before the command was started
	conn    transport.Conn
	process proc.ID
	monitor *ipc.Monitor
}

func (c *run) run(ctx context.Context) (command.Result, error) {
	nothing := command.Result{ExitCode: command.CodeUnknown, Started: c.started, Dir: c.r.opts.Dir}
	if len(c.req.Script) > longestArg {
		defer rundir.Remove(c.scriptDir()) // Or it goes with the program's directory.
	}
	if err := c.start(ctx); err != nil {
		c.r.end(&c.outputs)
		return nothing, err
	}
	c.monitor = ipc.NewMonitor(c.outputs, c.req.Stdout, c.req.Stderr)
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
		Env: c.env, Own: slices.Concat(c.own, c.req.Env, []string{"PWD=" + c.dir, c.r.entry, c.mark()}),
	}
	if spec.Argv, err = c.argv(); err != nil {
		return err
	}
	if len(c.req.Script) > longestArg {
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
	if c.conn, err = opts.Transport.Start(ctx, spec); err != nil {
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

// argv is bash -c SCRIPT. A script that is too long for an argument is read
// from a file by a bash -c that evals it.
func (c *run) argv() ([]string, error) {
	if len(c.req.Script) <= longestArg {
		return []string{"bash", "--noprofile", "--norc", "-c", c.req.Script}, nil
	}
	path := filepath.Join(c.scriptDir(), "script")
	err := os.Mkdir(c.scriptDir(), 0o700)
	if err == nil {
		err = os.WriteFile(path, []byte(c.req.Script), 0o600)
	}
	if err == nil {
		err = c.r.owner.Give(path, c.scriptDir())
	}
	if err != nil {
		return nil, &ipc.DiskError{Dir: c.r.dir, Err: err}
	}
	return []string{"bash", "--noprofile", "--norc", "-c", `eval "$(<` + ipc.Quote(path) + `)"`}, nil
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
	go func() {
		_, _ = io.Copy(patient{c.conn}, c.req.Stdin) // EPIPE: the command does not want it all.
		_ = c.conn.CloseStdin()                      // End of file for the command.
	}()
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
	limits := c.r.limitsOf(c.req, c.started)
	const firstTick = 2 * time.Millisecond
	tick := time.NewTimer(limits.Next(firstTick, 0))
	defer tick.Stop()
	for {
		select {
		case <-c.conn.Done():
			return outcome, nil
		case <-ctx.Done():
			cause = context.Cause(ctx)
		case <-tick.C:
			again := c.monitor.Look()
			cause = limits.Exceeded(c.monitor.Quiet())
			tick.Reset(limits.Next(again, c.monitor.Quiet()))
		}
		if cause == nil {
			continue
		}
		select {
		case <-c.conn.Done(): // It ended by itself: that wins.
			return outcome, nil
		default:
			return c.r.opts.Ladder.Stop(target{c}), cause
		}
	}
}

// writerPatience is how long Writers are waited for when the command was stopped
// or the caller has given up.
const writerPatience = time.Second

func (c *run) collect(ctx context.Context, cause error) (command.Result, error) {
	_ = c.conn.Close() // It has ended; its stdin may be broken.
	res := command.Result{Started: c.started, Dir: c.r.opts.Dir}
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
	return res, errors.Join(diskErr, readErr, writeErr)
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
	candidates, _, _ := c.r.pids.Since(c.lastPID) // None where there is no telling.
	for _, st := range candidates {
		if !st.Zombie() && (st.SID == c.process.PID || proc.HasEnv(st.PID, c.mark())) {
			res.Receipt.Leftover = append(res.Receipt.Leftover,
				command.Process{PID: st.PID, Start: st.Start, Command: proc.Command(st.PID)})
		}
	}
}

// target is the command for the ladder. There is no shell that must survive:
// bash is one of the processes to be stopped.
type target struct{ c *run }

func (t target) Shell() proc.ID             { return proc.ID{} }
func (t target) SignalShell(syscall.Signal) {}
func (t target) Started(proc.Stat) bool     { return true }
func (t target) Traps() bool                { return false }

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
