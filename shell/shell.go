package shell

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/askpass"
	"github.com/limpet-sh/limpet/internal/capture"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/files"
	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/transport"
)

// PersistentShell is one long-lived bash. It runs one command at a time: calls
// from several goroutines wait their turn. All methods are safe for concurrent
// use, also beside Close.
//
// Close it: it holds a bash, some descriptors and files. If the program is
// killed instead, a guard process ends what the shell had started.
//
// [Start] makes one. The zero value has no bash: Run, Do and Reset return an error
// that says so, the other methods do nothing.
type PersistentShell struct {
	opts    Options
	owner   *files.Owner // whose the files are; nil: this program's user
	program *rundir.Program
	tender  capture.Tender
	spool   spool

	// turn holds a token while nobody uses bash; whoever took it owns the
	// fields below it.
	turn     chan struct{}
	bash     *bash
	entry    string           // LIMPET_SESSION=..., the mark of its processes; set by newMark
	died     *death           // why bash is nil
	unheard  error            // what was lost with a bash that ended, of which the next command is told
	untold   *command.Restart // a restart of which the next command is told
	runner   *oneshot.Runner
	orphans  []proc.ID     // jobs of bashes that ended
	pristine saved.State   // of a bash that has just started; the zero value if nobody has saved it
	handed   []*Running    // commands that went, with their bash and mark
	guarded  chan struct{} // closed when the guard knows of the mark

	mark   atomic.Pointer[string] // entry, for those who have not got the turn
	asks   *askpass.Server        // nil: programs are left to ask as they like
	ticket atomic.Bool            // sudo may remember a password

	mu      sync.Mutex // after turn, never the other way round
	dir     string
	cancel  context.CancelCauseFunc // of the command that runs; nil when idle
	offered *running                // HandOver may have it; nil when idle, or what runs is not the caller's
	saves   *saver

	closing  chan struct{} // closed by the first Close
	closeOne sync.Once
	closed   chan struct{} // closed when Close is through
}

// Start starts a bash and waits until it is ready for commands. ctx bounds the
// start only, as does Options.StartTimeout. A nil opts is fine. Errors are
// [*StartError], [*DirError], [*ipc.DiskError], [*command.EnvError] for an entry of Options.Env, or ctx's own.
func Start(ctx context.Context, opts *Options) (*PersistentShell, error) {
	if ctx.Err() != nil {
		return nil, limits.NotBegun(ctx)
	}
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	id := environ.NewID()
	s := &PersistentShell{
		opts:    o,
		owner:   (*files.Owner)(transport.UserOf(o.Transport)),
		turn:    make(chan struct{}, 1),
		guarded: make(chan struct{}),
		closing: make(chan struct{}),
		closed:  make(chan struct{}),
		dir:     o.Dir,
	}
	if s.program, err = rundir.Acquire(o.RuntimeDir, id, s.owner != nil); err != nil {
		return nil, &ipc.DiskError{Dir: cmp.Or(o.RuntimeDir, rundir.Default(s.owner != nil)), Err: err}
	}
	s.newMark(id)
	if err := s.askPasswords(); err != nil {
		s.program.Release()
		return nil, &ipc.DiskError{Dir: s.program.Path, Err: err}
	}
	s.spool = spool{dir: s.program.Path, max: o.SpoolFiles}
	s.saves = newSaver(s)
	s.bash, err = startBash(ctx, s, o.State.restore())
	// Behind the start of bash, which it would slow down: a bash that does
	// nothing yet ends with its stdin anyway.
	go s.watchOver(s.entry, s.guarded)
	if err != nil {
		s.endBash(nil) // There is none, but there may be what the init files started.
		<-s.guarded
		s.release()
		return nil, err
	}
	s.dir = s.bash.dir()
	if lost := s.bash.taken.notRestored(s.bash.pwd); len(lost) > 0 { // Of a State.
		s.untold = &command.Restart{Reason: "the shell began with the state of another", Lost: lost}
	}
	s.turn <- struct{}{}
	return s, nil
}

// watchOver puts the processes with the mark under guard.
func (s *PersistentShell) watchOver(entry string, guarded chan struct{}) {
	defer close(guarded)
	if err := guard.Watch(s.opts.Bash, entry, s.program.Path); err != nil {
		s.opts.Logger.Warn("limpet: no guard: if this program is killed, running commands go on", "err", err)
	}
}

// Run runs script and waits for it. It is Do with a Request that says no more.
func (s *PersistentShell) Run(ctx context.Context, script string) (command.Result, error) {
	return s.Do(ctx, command.Request{Script: script})
}

// Do runs a request and waits for it: for its turn first, then for the
// command. When ctx ends while it waits for its turn, nothing ran. When ctx
// ends later the command is stopped by the Ladder, and the Result has the
// output until then. The table in the package documentation lists the Results
// and errors.
//
// Unless Options.StdinInShell says otherwise, a Request with Stdin runs in a bash of its own, in this shell's directory
// and with its exported environment, as if it had run here; what it changes
// there is gone.
func (s *PersistentShell) Do(ctx context.Context, req command.Request) (command.Result, error) {
	nothing := command.Result{ExitCode: command.CodeUnknown, Dir: s.Dir()}
	if err := req.Validate(); err != nil {
		return nothing, err
	}
	if s.opts.Before != nil {
		if err := s.opts.Before(ctx, &req); err != nil {
			return nothing, &RefusedError{err}
		}
		if err := req.Validate(); err != nil {
			return nothing, err
		}
	}
	if err := s.takeWithin(ctx, req.TurnTimeout); err != nil {
		return nothing, err
	}
	if s.opts.Admit != nil {
		if err := s.opts.Admit(ctx, req, s.dirOf(req)); err != nil {
			s.give()
			return nothing, &RefusedError{err}
		}
	}
	s.endTicket() // Of what a command has left in the background.
	run, done := s.running(ctx)
	if hook := s.opts.Hooks.Started; hook != nil {
		hook(req)
	}
	res, err := s.do(run, req)
	done()
	s.endTicket()
	if hook := s.opts.Hooks.Finished; hook != nil {
		hook(req, res, err)
	}
	s.give()
	return res, err
}

// dirOf is the directory that a request is to run in.
func (s *PersistentShell) dirOf(req command.Request) string {
	if req.Dir == "" || filepath.IsAbs(req.Dir) {
		return cmp.Or(req.Dir, s.Dir())
	}
	return filepath.Join(s.Dir(), req.Dir)
}

// do runs the request. The caller has the turn.
func (s *PersistentShell) do(ctx context.Context, req command.Request) (command.Result, error) {
	<-s.guarded // No command runs that would outlive a program that is killed now.
	restart, err := s.ensure(ctx)
	restart, s.untold = follows(s.untold, restart), nil
	if err != nil {
		return command.Result{ExitCode: command.CodeUnknown, Dir: s.Dir(), Restart: restart}, err
	}
	if lost := s.unheard; lost != nil {
		s.unheard = nil
		return command.Result{ExitCode: command.CodeUnknown, Dir: s.Dir(), Restart: restart}, lost
	}
	if lost, goOn := s.bash.check(); lost != nil {
		s.bash.obituary.told = true
		s.bash.save(ctx)
		s.bash.giveUp("had to be given up (" + lost.Error() + ")")
		if goOn {
			s.opts.Logger.Warn("limpet: " + lost.Error())
		}
		if restart = s.replace("", restart); restart.Err != nil {
			lost, goOn = restart.Err, false
		}
		if !goOn {
			return command.Result{ExitCode: command.CodeUnknown, Dir: s.Dir(), Restart: restart}, lost
		}
	}
	own := req.Stdin != nil && !s.opts.StdinInShell
	if !own && s.opts.Stdin != nil {
		req.Stdin = s.opts.Stdin
	}
	run := func() (command.Result, error) {
		s.bash.updateEnv(req.UpdateEnv)
		if own {
			return s.doStdin(ctx, req)
		}
		return s.bash.run(ctx, req, s.offer)
	}
	res, err := run()
	if errors.Is(err, errNotRun) {
		if restart = s.replace("bash ended while it was idle", restart); restart.Err == nil {
			res, err = run()
		} else {
			err = restart.Err
		}
	}
	switch {
	case s.bash != nil && s.bash.dead():
		restart = s.replace("the command ended bash", restart)
	case s.bash == nil && s.died != nil && isHandedOver(err):
		restart = s.goOn(restart)
	}
	res.Restart = restart
	s.setDir(&res)
	return res, err
}

// take waits for the turn.
func (s *PersistentShell) take(ctx context.Context) error {
	if err := s.refusal(ctx); err != nil {
		return err
	}
	select {
	case <-s.turn:
		return nil
	default:
	}
	select {
	case <-s.turn:
	case <-s.closing:
		return errClosed
	case <-ctx.Done():
		return limits.NotBegun(ctx)
	}
	// What ended meanwhile must not be started: of two cases that are ready,
	// select takes any.
	if err := s.refusal(ctx); err != nil {
		s.turn <- struct{}{}
		return err
	}
	return nil
}

// takeWithin waits for the turn, if there is a limit no longer than that.
func (s *PersistentShell) takeWithin(ctx context.Context, limit time.Duration) error {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, ErrBusy)
		defer cancel()
	}
	return s.take(ctx)
}

// refusal returns why nothing may be started now, or nil.
func (s *PersistentShell) refusal(ctx context.Context) error {
	if s.turn == nil {
		return errNotStarted
	}
	if ctx.Err() != nil {
		return limits.NotBegun(ctx)
	}
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	if err := s.opts.Interrupts.Refusal(); err != nil {
		return interrupt.NewRefusal(err)
	}
	return nil
}

// give passes the turn on, and sees to it that the state is saved soon.
func (s *PersistentShell) give() {
	s.saves.soon(s.bash)
	s.turn <- struct{}{}
}

// running makes the command that starts now one that Interrupt, Close and
// Options.Interrupts can stop.
func (s *PersistentShell) running(ctx context.Context) (_ context.Context, done func()) {
	free := func() {}
	if s.opts.Interrupts != nil {
		ctx, free = s.opts.Interrupts.Context(ctx)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.cancel = cancel
	s.mu.Unlock()
	select {
	case <-s.closing: // Close may have come before cancel was there for it.
		cancel(errClosed)
	default:
	}
	return ctx, func() {
		s.mu.Lock()
		s.cancel = nil
		s.mu.Unlock()
		cancel(nil)
		free()
	}
}

// Interrupt stops the command that runs now, as Ctrl-C does, and returns
// without waiting for it: its Run returns an [*InterruptError] that is
// ErrInterrupted. It does nothing, and returns nil, when no command runs. It
// returns ErrClosed after Close.
func (s *PersistentShell) Interrupt() error {
	select {
	case <-s.closing:
		return errClosed
	default:
	}
	s.stop(ErrInterrupted)
	return nil
}

func (s *PersistentShell) stop(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(cause)
	}
}

// Reset brings the shell back to the state after Start, or, with Options.State, to what
// it would have been without: it ends bash and all that it left running, and starts a new one. It waits for the command that
// runs; ctx bounds that and the start. After an error the next command tries
// to start a bash again.
func (s *PersistentShell) Reset(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	defer s.renewed()
	s.endBash((*bash).close)
	s.died, s.unheard = &death{reset: true}, nil
	var err error
	s.bash, err = startBash(ctx, s, nil)
	if err != nil {
		return err
	}
	s.died = nil
	s.mu.Lock()
	s.dir = s.bash.dir()
	s.mu.Unlock()
	return nil
}

func (s *PersistentShell) renewed() {
	if hook := s.opts.Hooks.Renewed; hook != nil {
		hook()
	}
}

// Dir returns the shell's current directory: where the last command left it.
// It does not wait for a command that runs.
func (s *PersistentShell) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir
}

func (s *PersistentShell) setDir(res *command.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bash != nil {
		s.dir = s.bash.dir()
	}
	res.Dir = s.dir
}

// Close stops the command that runs, ends bash and every process that the
// session left running, removes its files, and waits for all of it. It is safe
// to call twice and beside everything else; calls that wait for their turn
// return ErrClosed.
func (s *PersistentShell) Close() error {
	if s.turn == nil {
		return nil
	}
	s.closeOne.Do(func() {
		defer close(s.closed)
		close(s.closing)
		s.stop(errClosed)
		s.saves.close()
		<-s.turn // The command that was stopped gives it back. Nobody gets it again.
		s.endBash((*bash).leave)
		<-s.guarded
		s.release()
	})
	<-s.closed
	return nil
}

// release frees what a shell has that is not bash's.
func (s *PersistentShell) release() {
	if s.runner != nil {
		_ = s.runner.Close() // Its processes were ours, and are gone.
	}
	s.saves.close()
	s.asks.Close()
	s.tender.Close()
	s.spool.close()
	s.program.Release()
	guard.Forget(s.entry)
	for _, h := range s.handed {
		h.sessionClosed()
	}
}

// endBash ends bash, by the given method, and what the session left running.
// Who forks meanwhile is found in a later round.
func (s *PersistentShell) endBash(end func(*bash)) {
	var known []proc.ID
	if s.bash != nil {
		// While bash lives: without it, who has no mark (env -i) belongs to nobody.
		known = s.bash.members()
		end(s.bash)
	}
	proc.KillAll(s.entry, append(known, s.orphans...)...)
	s.orphans = nil
}
