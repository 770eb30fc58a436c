package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// argv starts a bash that reads commands from a pipe and yet is interactive:
// SIGINT then unwinds whatever it does to the top level, with the state kept,
// where a script would end.
var argv = []string{"bash", "--noprofile", "--norc", "--noediting", "-i"}

// bash is one incarnation of the shell's bash. Its fields belong to whoever
// has the shell's turn.
type bash struct {
	shell *PersistentShell
	opts  *Options
	entry string // the mark of its processes
	conn  transport.Conn
	files *ipc.Dir
	watch *ipc.Watch

	id          proc.ID // the process; Start is 0 where that is not known
	first       proc.ID // of its pid namespace, in which nobody else is; zero if it has none
	stdin       string  // its stdin, as proc.Stdin names it
	limits      string  // as proc.Limits had them at the start
	descriptors int     // how many it has when no command has opened one; 0: unknown
	seal        string  // marks the state that the exit trap saves

	// As the last record said.
	status   int
	flags    string
	pwd      string
	names    ipc.Names
	back     string      // where to go back to before the next command; see Request.Dir
	away     string      // the directory of the command's own request, if it has one
	trapSet  bool        // our exit trap is in place
	failure  string      // why bash was given up
	disabled bool        // builtins may have been, by enable -n
	poisoned bool        // the next [[ may be taken for a syntax error
	evicted  bool        // the ladder ended it, since it could not be unwound
	lostDir  string      // where it should be, but cannot
	leftOut  []string    // options of its state that it was not given
	missing  []ipc.Piece // of its state that it could not be given
	renewals int         // how often the files were made anew, or it was tried
	lost     error       // what of the transport's promises is lost; see transport.Checker
	goOn     bool        // and whether the next command may run all the same
	told     bool        // somebody was told of it

	program  *rundir.Program // held by a bash that went with its command
	commands int             // that were run
	unsaved  string          // the scripts of those that ran since the state was saved
	saved    savedState

	pids     *proc.Cursor // nil where there is none
	lastPID  int          // as of the end of the last command
	lastTime time.Time    // when that was
	earlier  map[proc.ID]command.Process
}

// startBash starts a bash, with a state to restore if that is not nil.
func startBash(ctx context.Context, s *PersistentShell, state *ipc.State) (*bash, error) {
	if state != nil {
		return s.startWith(ctx, *state)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.StartTimeout, errStartTimeout)
	defer cancel()
	b, err := openBash(ctx, s, false)
	if err != nil {
		return nil, err
	}
	if err := b.init(ctx); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// openBash starts a bash and waits until it reports. A bare one has no environment: a
// state will bring that.
func openBash(ctx context.Context, s *PersistentShell, bare bool) (*bash, error) {
	b := &bash{
		shell: s, opts: &s.opts, entry: s.entry, seal: ipc.NewID(), names: ipc.ViaBuiltin,
		earlier: make(map[proc.ID]command.Process),
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.opts.StartTimeout, errStartTimeout)
	defer cancel()
	if err := b.open(ctx, bare); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

var errStartTimeout = errors.New("it did not become ready in time; raise Options.StartTimeout if that is too short for its init files")

func (b *bash) open(ctx context.Context, bare bool) (err error) {
	if err := b.shell.program.Ensure(); err != nil {
		return &ipc.DiskError{Dir: b.shell.program.Path, Err: err}
	}
	path := filepath.Join(b.shell.program.Path, ipc.NewID())
	if b.files, err = ipc.NewDir(path, b.opts.keep(), b.shell.owner); err != nil {
		return err
	}
	b.watchFiles()
	b.pids, _ = proc.NewCursor() // Without one no leftovers are found.
	spec := transport.Spec{
		Path: b.opts.Bash, Argv: argv, SessionDir: path, Stdout: b.files.Stdout(),
		Dir: b.opts.Dir, Env: append(slices.Clip(b.opts.Env), "PWD="+b.opts.Dir),
		// Without a history file bash reads none: the prelude comes too late for that.
		Own: []string{"HISTFILE=", b.entry},
	}
	if b.opts.Stdin != nil {
		spec.Files = make([]*os.File, ipc.InputFD-2) // From 3 on; those before it stay closed.
		spec.Files[ipc.InputFD-3] = b.opts.Stdin
	}
	if bare {
		spec.Dir, spec.Env = "/", nil
	}
	if b.conn, err = b.opts.Transport.Start(ctx, spec); err != nil {
		if e, ok := errors.AsType[*StartError](err); ok {
			return e
		}
		e := &StartError{Argv: b.argv(), Code: -1, Err: err}
		if transport.IsNoProgram(err) {
			e.Remedy = transport.WantsBash
		}
		return e
	}
	b.id = proc.ID{PID: b.conn.PID()}
	if st, err := proc.Read(b.id.PID); err == nil {
		b.id.Start = st.Start
	}
	if c, ok := b.conn.(transport.Enclosed); ok {
		if st, err := proc.Read(c.Init()); err == nil {
			b.first = st.ID()
		}
	}
	if err := b.greet(ctx); err != nil {
		return err
	}
	b.stdin = proc.Stdin(b.id.PID)
	b.descriptors, _ = proc.Descriptors(b.id.PID) // 0: there is no telling here.
	b.limits = proc.Limits(b.id.PID)
	return nil
}

// argv is what was run, with bash's path in it.
func (b *bash) argv() []string { return append([]string{b.opts.Bash}, argv[1:]...) }

func (b *bash) watchFiles() {
	if b.opts.Poll > 0 {
		return
	}
	b.watch = ipc.Shared.Watch(b.files.StatusDir())
	if b.watch.Err != nil {
		b.opts.Logger.Warn("limpet: polling for results", "interval", ipc.PollInterval, "err", b.watch.Err)
	}
}

// greet runs the prelude and waits until bash reports.
func (b *bash) greet(ctx context.Context) error {
	id := ipc.NewID()
	before := b.files.ExitTrap(b.seal) + "\n"
	if b.opts.Stdin != nil {
		before += ipc.KeepCommands() + "\n"
	}
	lines, err := b.files.Start(id, before)
	if err != nil {
		return err
	}
	rec, err := b.exchange(ctx, id, lines)
	if err != nil {
		e := b.startError(err)
		if errors.Is(err, errEnded) {
			e.Remedy = transport.WantsBash
		}
		return e
	}
	if err := transport.CheckVersion(rec.Flags); err != nil {
		return b.startError(err)
	}
	b.pwd, b.trapSet = rec.Dir, true
	return nil
}

// exchange sends lines of limpet's own and waits for the record.
func (b *bash) exchange(ctx context.Context, id, lines string) (ipc.Record, error) {
	b.files.Rewind()
	if err := b.send(lines); err != nil {
		<-b.conn.Done()
		return ipc.Record{}, errEnded
	}
	poll := b.newPoll(doubt)
	defer poll.stop()
	for {
		if rec, ok := b.files.Record(id); ok {
			return rec, nil
		}
		select {
		case <-b.events():
		case <-poll.c:
			poll.again()
		case <-b.conn.Done():
			if rec, ok := b.files.Record(id); ok {
				return rec, nil
			}
			return ipc.Record{}, errEnded
		case <-ctx.Done():
			return ipc.Record{}, context.Cause(ctx)
		}
	}
}

var errEnded = errors.New("it ended")

// send writes lines to bash's stdin. It fails when bash has ended, or had to be.
func (b *bash) send(lines string) error {
	if debug {
		fmt.Fprintf(os.Stderr, "limpet %d < %s\n", b.id.PID, strings.ReplaceAll(strings.TrimSpace(lines), "\n", "\n         < "))
	}
	_, err := b.conn.Write([]byte(lines))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		b.giveUp("did not read its input, which somebody has filled")
	}
	return err
}

// events is nil, and so never ready, when records are polled for.
func (b *bash) events() <-chan struct{} {
	if b.watch == nil {
		return nil
	}
	return b.watch.C
}

// poll says when to look for a record without an event.
type poll struct {
	c     <-chan time.Time
	timer *time.Timer
	every time.Duration
}

// doubt is how often to look where there are events. They are the kernel's promise,
// and a command may have deleted the directory that they are about.
const doubt = 50 * time.Millisecond

// newPoll returns a poll; with events it is for the given time, 0 is never.
func (b *bash) newPoll(every time.Duration) poll {
	switch {
	case b.opts.Poll > 0:
		every = b.opts.Poll
	case b.watch.Err != nil:
		every = ipc.PollInterval
	case every == 0:
		return poll{}
	}
	timer := time.NewTimer(every)
	return poll{timer.C, timer, every}
}

func (p poll) again() { p.timer.Reset(p.every) }

func (p poll) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
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
	if b.lost == nil {
		b.look()
	}
	return b.lost, b.goOn
}

// look has the transport look for what the last command did, while the shell is idle:
// whoever is told of that need not wait for the next command.
func (b *bash) look() {
	if c, ok := b.conn.(transport.Checker); ok && b.lost == nil {
		b.lost, b.goOn = c.Check()
	}
}

// dir is where the next command starts.
func (b *bash) dir() string {
	if b.back != "" {
		return b.back
	}
	return b.pwd
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
		if _, ok := b.conn.(transport.Checker); ok && err != nil && b.lost == nil {
			b.lost, b.goOn = err, false
		}
	}
	if b.watch != nil {
		b.watch.Close()
	}
	if b.files != nil {
		b.files.Close()
	}
	b.pids.Close()
	b.pids = nil
}

// debug, set by LIMPET_DEBUG=1, prints the protocol to stderr.
var debug, _ = strconv.ParseBool(os.Getenv("LIMPET_DEBUG"))
