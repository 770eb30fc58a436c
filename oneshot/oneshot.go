// Package oneshot runs each command in a bash of its own, as bash -c does,
// with the Request and the Result of the persistent shell: the same limits,
// the same stop, the same bounded output, and no hang on a background process
// that holds a pipe.
package oneshot

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Options say how commands are run. The zero value of each field is a good
// default; the fields mean what they mean in shell.Options.
type Options struct {
	Bash       string   // empty: the first in PATH
	Dir        string   // empty: the program's
	Env        []string // nil: the program's, as it is
	RuntimeDir string
	Transport  transport.Transport

	Timeout, IdleTimeout time.Duration
	OutputLimit          int64 // 0: 1 MiB
	Ladder               interrupt.Ladder
	Interrupts           *interrupt.Source
}

// DefaultOutputLimit is how many bytes of a stream are kept.
const DefaultOutputLimit = 1 << 20

// Runner runs commands, each in a fresh bash, any number of them at the same
// time. Its methods are safe for concurrent use. Close it.
type Runner struct {
	opts  Options
	entry string // LIMPET_SESSION=..., the mark of what it starts
	owner bool   // the entry is ours, not that of a shell

	mu      sync.Mutex
	program *rundir.Program // nil until first used
	dir     string
	pool    *ipc.Pool
	pids    *proc.Cursor // nil where there is none
	keeper  ipc.Keeper
	running sync.WaitGroup
	closed  bool

	closeOne sync.Once
}

// New returns a Runner. It starts nothing and cannot fail: what is wrong with
// opts is said when a command is run. A nil opts is fine.
func New(opts *Options) *Runner {
	r := &Runner{entry: ipc.SessionVar + "=" + ipc.NewID(), owner: true}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Env == nil {
		r.opts.Env = os.Environ()
	}
	r.opts.Env = slices.Clone(r.opts.Env)
	if abs, err := filepath.Abs(r.opts.Dir); err == nil { // If not, a command says what is wrong.
		r.opts.Dir = abs
	}
	if r.opts.OutputLimit <= 0 {
		r.opts.OutputLimit = DefaultOutputLimit
	}
	if r.opts.Transport == nil {
		r.opts.Transport = local.Transport{}
	}
	return r
}

// NewInSession is New for a Runner whose commands belong to somebody's session:
// they carry entry, "LIMPET_SESSION=...", in their environment, and whoever has
// the session guards them and ends what they leave running.
func NewInSession(entry string, opts *Options) *Runner {
	r := New(opts)
	r.entry, r.owner = entry, false
	return r
}

// Run runs script in a fresh bash and waits for it.
func (r *Runner) Run(ctx context.Context, script string) (command.Result, error) {
	return r.Do(ctx, command.Request{Script: script})
}

// Do runs a request in a fresh bash and waits for it. The Results and errors
// are those of shell.PersistentShell.Do, but that a bash that is killed is a
// command that is killed: exit code 128+n and no error.
func (r *Runner) Do(ctx context.Context, req command.Request) (command.Result, error) {
	return r.do(ctx, &run{r: r, req: req, env: r.opts.Env})
}

// DoWithEnv is Do with env in the place of Options.Env, for this command. It is
// meant to come from a process of the Transport: one that keeps variables from
// what it starts passes it on whole.
func (r *Runner) DoWithEnv(ctx context.Context, env []string, req command.Request) (command.Result, error) {
	return r.do(ctx, &run{r: r, req: req, own: env})
}

func (r *Runner) do(ctx context.Context, c *run) (_ command.Result, err error) {
	req := c.req
	nothing := command.Result{ExitCode: command.CodeUnknown, Dir: r.opts.Dir}
	if err := req.Validate(); err != nil {
		return nothing, err
	}
	if ctx.Err() != nil {
		return nothing, context.Cause(ctx)
	}
	if err := r.opts.Interrupts.Refusal(); err != nil {
		return nothing, interrupt.NewError(ctx, err, interrupt.Outcome{})
	}
	if c.outputs, err = r.begin(req.MergeStderr); err != nil {
		return nothing, err
	}
	defer r.running.Done()
	if r.opts.Interrupts != nil {
		var free func()
		ctx, free = r.opts.Interrupts.Context(ctx)
		defer free()
	}
	c.id, c.started = ipc.NewID(), time.Now()
	return c.run(ctx)
}

// begin takes the captures of a command, and makes what the first one needs.
func (r *Runner) begin(merge bool) (ipc.Outputs, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ipc.Outputs{}, interrupt.ErrClosed
	}
	if r.program == nil {
		if err := r.open(); err != nil {
			return ipc.Outputs{}, err
		}
	}
	if err := r.renew(); err != nil {
		return ipc.Outputs{}, err
	}
	outputs, err := r.pool.Outputs(merge)
	if err == nil {
		r.running.Add(1)
	}
	return outputs, err
}

// renew makes the directory anew if somebody deleted it. The caller holds mu.
func (r *Runner) renew() error {
	if _, err := os.Stat(r.dir); err == nil {
		return nil
	}
	r.pool.Close() // Nobody finds these by name any more.
	err := r.program.Ensure()
	if err == nil {
		err = os.MkdirAll(r.dir, 0o700)
	}
	if err == nil {
		r.pool, err = ipc.NewPool(r.dir, r.keep())
	}
	if err != nil {
		return &ipc.DiskError{Dir: r.dir, Err: err}
	}
	return nil
}

// keep is how many bytes of each end of a stream stay on disk.
func (r *Runner) keep() int64 { return r.opts.OutputLimit/2 + 4096 }

// open makes the directory and sets the guard. The caller holds mu.
func (r *Runner) open() error {
	bash, err := transport.FindBash(r.opts.Bash)
	if err != nil {
		return err
	}
	r.opts.Bash = bash
	id := ipc.NewID()
	program, err := rundir.Acquire(r.opts.RuntimeDir, id)
	if err != nil {
		return &ipc.DiskError{Dir: r.opts.RuntimeDir, Err: err}
	}
	r.dir = filepath.Join(program.Path, "oneshot-"+id)
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		program.Release()
		return &ipc.DiskError{Dir: r.dir, Err: err}
	}
	if r.owner {
		if err := guard.Watch(bash, r.entry, program.Path); err != nil {
			guard.Forget(r.entry)
			program.Release()
			return &transport.StartError{Argv: []string{bash}, Code: -1, Err: err}
		}
	}
	pool, err := ipc.NewPool(r.dir, r.keep())
	if err != nil {
		program.Release()
		return err
	}
	r.program, r.pool = program, pool
	r.pids, _ = proc.NewCursor() // Without one no leftovers are found.
	return nil
}

// end gives the captures of a command back.
func (r *Runner) end(outputs *ipc.Outputs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keeper.Keep(outputs.Release())
}

// Close waits for the commands that run, ends what they left running, and
// removes the Runner's files. It is safe to call twice, and beside itself: each
// call waits. What is run afterwards fails with interrupt.ErrClosed.
func (r *Runner) Close() error {
	r.closeOne.Do(func() {
		r.mu.Lock()
		r.closed = true
		r.mu.Unlock()
		r.running.Wait()
		if r.program == nil {
			return
		}
		if r.owner {
			proc.KillAll(r.entry)
			guard.Forget(r.entry)
		}
		r.keeper.Close()
		r.pool.Close()
		r.pids.Close()
		_ = rundir.Remove(r.dir) // Best effort: what stays goes with the program's directory.
		r.program.Release()
	})
	return nil
}

// limitsOf are the limits of a request.
func (r *Runner) limitsOf(req command.Request, started time.Time) limits.Limits {
	return limits.Limits{
		Started: started,
		Timeout: limits.Pick(req.Timeout, r.opts.Timeout),
		Idle:    limits.Pick(req.IdleTimeout, r.opts.IdleTimeout),
	}
}
