package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/internal/uptime"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// Session is a named environment: a shell, the jobs and terminals that were started in it,
// and the policy of them all. Its methods are safe for concurrent use; commands run one at
// a time, and wait for their turn. Get one from [Registry.Open].
type Session struct {
	r         *Registry
	name      string
	policy    *sandbox.Policy
	transport transport.Transport // nil: that of the options
	opts      shell.Options
	approver  Approver // nil: whatever somebody wants is done
	created   time.Time

	starting chan struct{} // has a token while the shell is started, or closed
	busy     sync.WaitGroup
	ctx      context.Context // ends with Close
	cancel   context.CancelCauseFunc

	mu          sync.Mutex
	sh          *shell.PersistentShell // nil until it is used
	closing     bool
	uses        int
	lastUsed    time.Time
	usedUp      time.Duration // uptime.Now of lastUsed
	lastActive  time.Time     // as the reaper has it
	reaped      bool
	running     []*asked // in the order in which they came
	commands    int
	checkpoints []Checkpoint

	marks      *marks
	unrecorded atomic.Bool // what was to be recorded last could not be

	closeOne sync.Once
	over     chan struct{} // closed when Close is through
	err      error         // of Close
}

// newSession returns a session that was not used yet.
func newSession(r *Registry, name string, spec *Spec) (*Session, error) {
	if spec == nil {
		spec = &Spec{}
	}
	s := &Session{
		r: r, name: name, policy: cmp.Or(spec.Policy, r.opts.Policy), opts: *r.opts.Shell, created: time.Now(),
		starting: make(chan struct{}, 1), over: make(chan struct{}), marks: newMarks(),
	}
	s.lastUsed, s.usedUp = s.created, uptime.Now()
	s.opts.State, s.checkpoints = spec.State, slices.Clone(spec.Checkpoints)
	if s.approver = spec.approver; s.approver == nil && r.opts.Approve != nil {
		s.approver = r.opts.Approve(Approved{name, spec.State != nil, s.policy})
	}
	s.opts.Admit = s.admit(s.opts.Admit)
	s.opts.Hooks.Renewed = s.renewed(s.opts.Hooks.Renewed)
	s.opts.Dir = cmp.Or(spec.Dir, s.opts.Dir)
	if s.policy != nil {
		where, err := s.sandboxed(*s.policy)
		if err == nil && r.opts.StateDir != "" { // Else it is in the runtime directory, of which a sandbox sees nothing.
			err = where.Shield(r.opts.StateDir)
		}
		if err != nil {
			return nil, err
		}
		s.transport, s.opts.Transport = where, where
		s.opts.Dir = cmp.Or(s.opts.Dir, s.policy.FS.Workspace)
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s, nil
}

// sandboxed returns a transport for a policy, whose news are the session's.
func (s *Session) sandboxed(policy sandbox.Policy) (*sandbox.Transport, error) {
	where, err := sandbox.New(policy)
	if err != nil {
		return nil, err
	}
	where.Violations = func(v sandbox.Violation) {
		s.r.opts.Logger.Warn("limpet: programs outside would run what it says: look at it first", "session", s.name, "what", v.String())
		s.Notify("what programs outside would run was made: look at it first: " + v.String())
	}
	where.Denied = func(host string, port uint16, why string) {
		s.Notify(fmt.Sprintf("the sandbox was not let to %s port %d: %s", host, port, why))
	}
	return where, nil
}

// Done returns a channel that is closed when the session has ended: by Close, or as it was idle.
func (s *Session) Done() <-chan struct{} { return s.over }

// Closing reports whether the session has ended, or is about to: it takes nothing new.
func (s *Session) Closing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// Name is that of the session.
func (s *Session) Name() string { return s.name }

// Run runs a script in the session's shell and waits for it. It is Do with a Request that
// says no more.
func (s *Session) Run(ctx context.Context, script string) (command.Result, error) {
	return s.Do(ctx, command.Request{Script: script})
}

// Do runs a request in the session's shell, which it starts if it is the first, and waits
// for it. Results and errors are those of shell.PersistentShell.Do and shell.Start, but
// for one: a command that is to be handed over becomes a job, and the error is a
// [*BackgroundError]. One that cannot become a job is stopped as if it was not to be.
func (s *Session) Do(ctx context.Context, req command.Request) (command.Result, error) {
	nothing := command.Result{ExitCode: command.CodeUnknown}
	if err := req.Validate(); err != nil {
		return nothing, err
	}
	sh, done, err := s.use(ctx)
	if err != nil {
		return nothing, err
	}
	defer done()
	defer s.notes(&asked{req.Script, runes.Brief(req.Caller, mostHolder)})()
	ctx, end := s.watch(ctx, &req)
	ctx, ends := s.recordedCommand(ctx, req)
	res, err := s.approved(ctx, sh, req)
	if handed, ok := errors.AsType[*shell.HandedOverError](err); ok {
		err = s.adopt(ctx, handed, err)
		if stopped, ok := errors.AsType[*shell.InterruptError](err); ok {
			res.ExitCode = stopped.ExitCode() // It could not be adopted.
		}
	}
	err = s.ofShell("use", err)
	end(res, err)
	ends(res, err)
	return res, err
}

// asked is a script, and who asked for it, if that was said.
type asked struct{ script, caller string }

// notes takes down that a script runs.
func (s *Session) notes(script *asked) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(s.running, script)
	s.commands++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running = slices.DeleteFunc(s.running, func(one *asked) bool { return one == script })
	}
}

// Interrupt stops the command that runs now, as Ctrl-C does, and returns without waiting
// for it, so that ctx means nothing here. It reports whether one ran. Jobs and terminals run on.
func (s *Session) Interrupt(context.Context) (ran bool, err error) {
	s.mu.Lock()
	sh, ran, closing := s.sh, len(s.running) > 0, s.closing
	s.mu.Unlock()
	switch {
	case closing:
		return false, s.fail("interrupt", ErrClosed)
	case sh == nil:
		return false, nil
	}
	return ran, sh.Interrupt()
}

// Reset brings the session's shell back to the state after its start, that of a fork to
// what a new session has, and ends what runs in its background. Jobs, terminals and checkpoints stay. It waits for the command that
// runs; ctx bounds that.
func (s *Session) Reset(ctx context.Context) error {
	sh, done, err := s.use(ctx)
	if err != nil {
		return err
	}
	defer done()
	return s.ofShell("reset", sh.Reset(ctx))
}

// Dir is the directory that the session's shell is in, or starts in if it was not used
// yet. It does not wait for a command.
func (s *Session) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dir()
}

// dir is Dir. The caller holds mu.
func (s *Session) dir() string {
	switch {
	case s.sh != nil:
		return s.sh.Dir()
	case s.opts.State != nil:
		return s.opts.State.Dir()
	}
	return s.opts.Dir
}

// Info returns what is known of the session now. It does not wait for a command, and does not
// fail.
func (s *Session) Info(context.Context) (Info, error) { return s.info(), nil }

func (s *Session) info() Info {
	jobs, terminals, _ := s.active() // What cannot be told is not shown.
	s.mu.Lock()
	defer s.mu.Unlock()
	info := Info{
		Name: s.name, State: Unused, Dir: s.dir(), Created: s.created, LastUsed: uptime.At(s.lastUsed, s.usedUp), Commands: s.commands, Jobs: jobs, Terminals: terminals,
	}
	info.SinceUsed = max(time.Since(info.LastUsed), 0)
	if s.sh != nil {
		info.State = Idle
	}
	if s.uses > 0 {
		info.State = Busy
	}
	if len(s.running) > 0 {
		info.Running, info.Holder = s.running[0].script, s.running[0].caller
	}
	for _, c := range s.checkpoints {
		info.Checkpoints = append(info.Checkpoints, c.Name)
	}
	if s.policy != nil {
		info.Policy = s.policy.Name
	}
	return info
}

// use returns the shell, which it starts if nobody has. Call done: until then nobody takes
// the session for idle.
func (s *Session) use(ctx context.Context) (_ *shell.PersistentShell, done func(), err error) {
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return nil, nil, s.fail("use", ErrClosed)
	}
	s.uses++
	s.busy.Add(1)
	s.mu.Unlock()
	sh, err := s.shell(ctx)
	if err != nil {
		s.used()
		return nil, nil, err
	}
	return sh, s.used, nil
}

func (s *Session) used() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uses--
	s.lastUsed, s.usedUp = time.Now(), uptime.Now()
	s.busy.Done()
}

// keep keeps the session from being taken for idle. It reports false if it is closed, or
// is being closed.
func (s *Session) keep() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastUsed, s.usedUp = time.Now(), uptime.Now()
	return !s.closing
}

// shell returns the session's shell, and starts it if nobody has.
func (s *Session) shell(ctx context.Context) (*shell.PersistentShell, error) {
	select {
	case s.starting <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("nothing ran: %w", context.Cause(ctx))
	case <-s.ctx.Done():
		return nil, s.fail("use", ErrClosed)
	}
	defer func() { <-s.starting }()
	s.mu.Lock()
	sh := s.sh
	s.mu.Unlock()
	if sh != nil {
		return sh, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })()
	sh, err := shell.Start(ctx, &s.opts)
	if err != nil {
		if s.ctx.Err() != nil {
			err = s.fail("use", ErrClosed)
		}
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sh = sh
	return sh, nil
}
