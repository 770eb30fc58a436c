// Package oneshot runs each command in a bash of its own, as bash -c does,
// with the Request and the Result of the persistent shell: the same limits,
// the same stop, the same bounded output, and no hang on a background process
// that holds a pipe.
package oneshot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/capture"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Options say how commands are run. The zero value of each field, and a nil
// *Options, are good defaults. New copies them. Negative times and limits are taken
// for 0.
type Options struct {
	// Bash is the bash to run, 4.4 or newer. Empty means the first in PATH. The
	// first command of a Runner asks it for its version, on this machine.
	Bash string

	// Dir is where commands run, unless their Request says another. Empty means
	// the program's directory.
	Dir string

	// Env is the environment of the commands. Nil means the default of a shell:
	// the program's own, without what looks like a secret, and with pagers and
	// editors switched off (shell.DefaultEnv). Otherwise it is exactly Env; an
	// empty slice is an empty environment. LIMPET_SESSION and LIMPET_COMMAND
	// are added in any case: they mark the processes of the Runner and of the
	// command.
	Env []string

	// RuntimeDir is where the files of the commands are, while they run. Empty
	// means XDG_RUNTIME_DIR, /dev/shm if it has room, or the temp directory.
	RuntimeDir string

	// Transport starts bash. Nil means on this machine.
	Transport transport.Transport

	// Timeout and IdleTimeout are for requests that do not say; 0 means none.
	Timeout, IdleTimeout time.Duration

	// OutputLimit is how many bytes are kept of each stream of a command, head
	// and tail together. 0 means 1 MiB.
	OutputLimit int64

	// Ladder is how a command is stopped. Empty means interrupt.DefaultLadder.
	Ladder interrupt.Ladder

	// Interrupts stops commands of this Runner from outside. Nil means that
	// only contexts do.
	Interrupts *interrupt.Source
}

// DefaultOutputLimit is how many bytes of a stream are kept.
const DefaultOutputLimit = 1 << 20

// Runner runs commands, each in a fresh bash, any number of them at the same
// time. Its methods are safe for concurrent use. Close it.
type Runner struct {
	opts  Options
	entry string       // LIMPET_SESSION=..., the mark of what it starts
	alone bool         // the entry is ours, not that of a shell
	owner *files.Owner // whose the files are; nil: this program's user

	mu      sync.Mutex
	program *rundir.Program // nil until first used
	dir     string
	pool    *capture.Pool
	pids    *proc.Cursor // nil where there is none
	tender  capture.Tender
	running sync.WaitGroup
	closed  bool

	closeOne sync.Once
}

// New returns a Runner. It starts nothing and cannot fail: what is wrong with
// opts is said when a command is run. A nil opts is fine.
func New(opts *Options) *Runner {
	r := &Runner{entry: ipc.SessionVar + "=" + environ.NewID(), alone: true}
	if opts != nil {
		r.opts = *opts
	}
	if r.opts.Env == nil {
		r.opts.Env = environ.Default()
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
	r.owner = (*files.Owner)(transport.UserOf(r.opts.Transport))
	return r
}

// NewInSession is for whoever has a session of its own, as a shell has: the commands
// belong to that session. They carry its mark in their environment, which is entry,
// "LIMPET_SESSION=...". So the Runner sets no guard, and Close ends nothing that a
// command left running: that is up to the session. Its bash is not asked for its
// version.
func NewInSession(entry string, opts *Options) *Runner {
	r := New(opts)
	r.entry, r.alone = entry, false
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

// DoWithEnv is Do with env in the place of Options.Env, for this one command. A
// Transport may keep variables of this machine from what it starts, as a sandbox
// does with secrets. It keeps back nothing of env: pass what a process that the
// Transport itself started has said, as a shell does with what its bash exports.
func (r *Runner) DoWithEnv(ctx context.Context, env []string, req command.Request) (command.Result, error) {
	return r.do(ctx, &run{r: r, req: req, own: env})
}

func (r *Runner) do(ctx context.Context, c *run) (_ command.Result, err error) {
	req := c.req
	nothing := command.Result{ExitCode: command.CodeUnknown, Dir: r.opts.Dir}
	if err := req.Validate(); err != nil {
		return nothing, err
	}
	if req.HandOver || req.HandOverAfter > 0 {
		return nothing, command.ErrHandOver
	}
	if ctx.Err() != nil {
		return nothing, limits.NotBegun(ctx)
	}
	if err := r.opts.Interrupts.Refusal(); err != nil {
		return nothing, interrupt.NewRefusal(err)
	}
	if c.outputs, err = r.begin(ctx, req.MergeStderr); err != nil {
		return nothing, err
	}
	defer r.running.Done()
	if r.opts.Interrupts != nil {
		var free func()
		ctx, free = r.opts.Interrupts.Context(ctx)
		defer free()
	}
	c.id, c.started = environ.NewID(), time.Now()
	return c.run(ctx)
}

var errClosed = fmt.Errorf("the runner is %w: make another one with New", interrupt.ErrClosed)

// begin takes the captures of a command, and makes what the first one needs.
func (r *Runner) begin(ctx context.Context, merge bool) (capture.Outputs, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return capture.Outputs{}, errClosed
	}
	if r.program == nil {
		if err := r.open(ctx); err != nil {
			return capture.Outputs{}, err
		}
	}
	if err := r.renew(); err != nil {
		return capture.Outputs{}, err
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
		err = private.MkdirAll(r.dir)
	}
	if err == nil {
		r.pool, err = capture.NewPool(r.dir, r.keep(), r.owner)
	}
	if err != nil {
		return &ipc.DiskError{Dir: r.dir, Err: err}
	}
	return nil
}

// keep is how many bytes of each end of a stream stay on disk.
func (r *Runner) keep() int64 { return r.opts.OutputLimit/2 + 4096 }

// open checks what the commands get, makes the directory and sets the guard. The
// caller holds mu.
func (r *Runner) open(ctx context.Context) error {
	if err := environ.Check(r.opts.Env); err != nil {
		return err
	}
	bash, err := transport.FindBash(r.opts.Bash)
	if err != nil {
		return err
	}
	if r.alone { // Else it is that of a shell, which has checked.
		// Another interpreter would run a script in its own way, or fail with
		// a status that looks like the script's.
		if err := transport.CheckBash(ctx, bash); err != nil {
			return err
		}
	}
	r.opts.Bash = bash
	id := environ.NewID()
	program, err := rundir.Acquire(r.opts.RuntimeDir, id, r.owner != nil)
	if err != nil {
		return &ipc.DiskError{Dir: r.opts.RuntimeDir, Err: err}
	}
	r.dir = filepath.Join(program.Path, "oneshot-"+id)
	if err := private.Mkdir(r.dir); err != nil {
		program.Release()
		return &ipc.DiskError{Dir: r.dir, Err: err}
	}
	if r.alone {
		if err := guard.Watch(bash, r.entry, program.Path); err != nil {
			guard.Forget(r.entry)
			program.Release()
			return &transport.StartError{Argv: []string{bash}, Code: -1, Err: err}
		}
	}
	pool, err := capture.NewPool(r.dir, r.keep(), r.owner)
	if err != nil {
		program.Release()
		return err
	}
	r.program, r.pool = program, pool
	r.pids, _ = proc.NewCursor() // Without one no leftovers are found.
	return nil
}

// end gives the captures of a command back.
func (r *Runner) end(outputs *capture.Outputs) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tender.Tend(outputs.Release())
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
		if r.alone {
			proc.KillAll(r.entry)
			guard.Forget(r.entry)
		}
		r.tender.Close()
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
