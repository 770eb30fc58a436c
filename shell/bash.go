package shell

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// argv starts a bash that reads commands from a pipe and yet is interactive:
// SIGINT then unwinds whatever it does to the top level, with the state kept,
// where a script would end. With +H it takes no ! in the name of its runtime directory for
// an event of its history.
var argv = []string{"bash", "--noprofile", "--norc", "--noediting", "-i", "+H"}

// bash is one incarnation of the shell's bash. Its fields belong to whoever
// has the shell's turn.
type bash struct {
	shell    *PersistentShell
	opts     *Options
	conn     transport.Conn
	exchange *ipc.Exchange
	processes
	whereabouts

	current  ipc.Call // the command that runs, or what it has left to be undone: a directory
	saved    savedState
	taken    restoration // what it was given of the state of the one before
	obituary obituary

	// What the scripts that ran have left in it.
	commands int         // that were run
	status   int         // $?
	nameless []string    // entries of its environment: see [saved.State]
	given    saved.Given // what limpet has set of its variables
	monitor  bool        // job control is on (set -m)
	options  []string    // of strict, that each script begins with
	disabled bool        // builtins may have been, by enable -n
	poisoned bool        // the next [[ may be taken for a syntax error
	pristine bool        // it has nothing but its environment, as long as no command has run
	inPlace  bool        // no script runs in a fork: it is an init file

	held *rundir.Program // by a bash that went with its command
}

// whereabouts are the directories that bash is in, or has to go to.
type whereabouts struct {
	pwd  string
	back string // where to go back to before the next command; see Request.Dir
}

// dir is where the next command starts.
func (w *whereabouts) dir() string {
	if w.back != "" {
		return w.back
	}
	return w.pwd
}

// startBash starts a bash, with a state to restore if that is not nil.
func startBash(ctx context.Context, s *PersistentShell, state *saved.State) (*bash, error) {
	if state != nil {
		return s.startWith(ctx, *state)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.StartTimeout, errStartTimeout)
	defer cancel()
	b, err := openBash(ctx, s, s.opts.Dir, append(slices.Clip(s.opts.Env), "PWD="+s.opts.Dir))
	if err != nil {
		return nil, err
	}
	b.pristine, b.given = true, saved.Given{Env: s.opts.Env}
	if err := b.init(ctx); err != nil {
		b.close()
		return nil, err
	}
	if s.opts.Login || len(s.opts.InitFiles) > 0 {
		b.pristine = false
	}
	return b, nil
}

// openBash starts a bash with an environment, in a directory, and waits until it reports.
func openBash(ctx context.Context, s *PersistentShell, dir string, env []string) (*bash, error) {
	b := &bash{
		shell: s, opts: &s.opts, processes: newProcesses(s.entry),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.StartTimeout, errStartTimeout)
	defer cancel()
	if err := b.open(ctx, dir, env); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

var errStartTimeout = errors.New("it did not become ready in time; raise Options.StartTimeout if that is too short for its init files")

func (b *bash) open(ctx context.Context, dir string, env []string) (err error) {
	if err := b.shell.program.Ensure(); err != nil {
		return &ipc.DiskError{Dir: b.shell.program.Path, Err: err}
	}
	b.nameless = environ.Nameless(env)
	path := filepath.Join(b.shell.program.Path, environ.NewID())
	b.exchange, err = ipc.Open(ipc.Options{
		Path: path, Keep: b.opts.keep(), Owner: b.shell.owner, Stdin: b.opts.standing(), Poll: b.opts.Poll,
		Ensure: b.shell.program.Ensure, Logger: b.opts.Logger,
		Stuck: func() { b.giveUp("did not read its input, which somebody has filled") },
	})
	if err != nil {
		return err
	}
	spec := transport.Spec{
		Path: b.opts.Bash, Argv: argv, SessionDir: path, Stdout: b.exchange.Stdout(),
		Dir: dir, Env: env,
		// Without a history file bash reads none: the prelude comes too late for that.
		Own: []string{"HISTFILE=", b.entry},
	}
	if b.opts.standing() {
		in := b.opts.Stdin
		if in == nil {
			if in, err = os.Open(os.DevNull); err != nil {
				return err
			}
			defer in.Close() // Bash has its own.
		}
		spec.Files = make([]*os.File, ipc.InputFD-2) // From 3 on; those before it stay closed.
		spec.Files[ipc.InputFD-3] = in
	}
	if b.conn, err = b.opts.Transport.Start(ctx, spec); err != nil {
		// It was there when the shell was made. A Transport may say it of another program.
		if err := transport.CheckDir(spec.Dir); err != nil {
			return err
		}
		if e, ok := errors.AsType[*StartError](err); ok {
			return e
		}
		e := &StartError{Argv: b.argv(), Code: -1, Err: err}
		if transport.IsNoProgram(err) {
			e.Remedy = transport.WantsBash
		}
		return e
	}
	b.processes.born(b.conn)
	if err := b.greet(ctx); err != nil {
		return err
	}
	b.processes.ready()
	return nil
}

// argv is what was run, with bash's path in it.
func (b *bash) argv() []string { return append([]string{b.opts.Bash}, argv[1:]...) }

// greet runs the prelude and waits until bash reports.
func (b *bash) greet(ctx context.Context) error {
	var before []string
	if b.opts.Aliases {
		before = append(before, "shopt -s expand_aliases") // A state that is restored says for itself.
	}
	rec, err := b.exchange.Greet(ctx, b.conn, before...)
	if err != nil {
		e := b.startError(err)
		if errors.Is(err, ipc.ErrEnded) {
			e.Remedy = transport.WantsBash
		}
		return e
	}
	if err := transport.CheckVersion(rec.Options); err != nil {
		return b.startError(err)
	}
	b.pwd = rec.Dir
	return nil
}

// startError says what went wrong with bash, with what it said itself.
func (b *bash) startError(err error) *StartError {
	e := &StartError{Argv: b.argv(), Code: -1, Err: err}
	if b.dead() {
		exit := b.conn.Exit()
		e.Code, e.Signal = exit.Code, exit.Signal
	}
	_, stderr := b.conn.Said()
	e.Said = said(stderr)
	return e
}

// dead reports whether bash has ended. A nil bash is dead.
func (b *bash) dead() bool {
	if b == nil || b.conn == nil {
		return true
	}
	select {
	case <-b.conn.Done():
		return true
	default:
		return false
	}
}

// check asks whether bash still is where it was promised to be.
func (b *bash) check() (lost error, goOn bool) {
	if b.obituary.lost == nil {
		b.look()
	}
	return b.obituary.lost, b.obituary.goOn
}

// look has the transport look for what the last command did, while the shell is idle:
// whoever is told of that need not wait for the next command.
func (b *bash) look() {
	if c, ok := b.conn.(transport.Checker); ok && b.obituary.lost == nil {
		b.obituary.lost, b.obituary.goOn = c.Check()
	}
}

// leaveGrace is how long bash may take for its exit traps when it is closed.
const leaveGrace = 500 * time.Millisecond

// leave lets bash end by itself, so that the user's exit trap runs, and closes
// it.
func (b *bash) leave() {
	if b.conn != nil {
		_ = b.conn.CloseStdin() // Close closes it for good.
		timer := time.NewTimer(leaveGrace)
		select {
		case <-b.conn.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	b.close()
}

// close ends bash and frees what the incarnation has. It is safe to call twice.
func (b *bash) close() {
	if b.conn != nil {
		err := b.conn.Close() // For others than a Checker: its stdin may be broken; it is gone.
		if _, ok := b.conn.(transport.Checker); ok && err != nil && b.obituary.lost == nil {
			b.obituary.lost, b.obituary.goOn = err, false
		}
	}
	if b.exchange != nil {
		b.exchange.Close()
	}
	b.processes.close()
}
