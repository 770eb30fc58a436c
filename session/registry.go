package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// Registry has the sessions of a program. Its methods are safe for concurrent use. Close
// it: it holds bashes, jobs and terminals. If the program is killed instead, guard
// processes end them.
type Registry struct {
	opts Options
	made time.Time

	mu       sync.Mutex
	sessions map[string]*Session
	lapsed   map[string]string // sessions that were closed for being idle, and what to tell
	watched  []string          // jobs that are watched, and whose end is to be told
	closed   bool
	leaving  bool // by Leave
	reaper   *reaper

	// What sessions share, opened when it is first needed.
	opening   sync.Mutex // before mu
	program   *rundir.Program
	dir       string
	jobs      *jobs.Registry
	terminals *terminal.Registry
	attach    *remote.Server // nil if other programs cannot reach the terminals
	notices   notices
	actions   atomic.Int64 // that were recorded
	overs     overs
	events    events

	closeOne sync.Once
	over     chan struct{} // closed when Close is through
	err      error         // of Close
}

// New returns a registry without sessions. It starts nothing, and makes no files. A nil
// opts is fine. The error is that of [sandbox.New] or [sandbox.Transport.Shield]: a policy that
// cannot be right, or that shows the StateDir, is found here.
func New(opts *Options) (*Registry, error) {
	o := opts.withDefaults()
	if o.StateDir != "" {
		var err error
		if o.StateDir, err = filepath.Abs(o.StateDir); err != nil { // The program may go elsewhere.
			return nil, &Error{Op: "find the state directory", Err: err}
		}
	}
	if o.Policy != nil {
		where, err := sandbox.New(*o.Policy)
		if err == nil && o.StateDir != "" {
			err = where.Shield(o.StateDir)
		}
		if err != nil {
			return nil, err
		}
	}
	r := &Registry{opts: o, made: time.Now(), sessions: make(map[string]*Session), lapsed: make(map[string]string), over: make(chan struct{})}
	r.reaper = newReaper(r, o.IdleTimeout)
	return r, nil
}

// Approves reports whether something decides about what runs in the sessions: Options.Approve.
func (r *Registry) Approves() bool { return r.opts.Approve != nil }

// StdinInShell reports whether commands with a Stdin run in the shells of the sessions themselves:
// shell.Options.StdinInShell.
func (r *Registry) StdinInShell() bool { return r.opts.Shell != nil && r.opts.Shell.StdinInShell }

// ValidName reports whether a session, or a checkpoint, can have such a name.
func ValidName(name string) bool { return names().MatchString(name) }

// names are those that can stand in a URI, on a command line and in a file's name.
var names = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Open returns the session of that name, and makes it if there is none. It starts
// nothing: the session's first use does. A Spec is for a session that is made; a nil one
// is fine. It waits for one of that name that is being closed; ctx bounds that. Errors are
// ErrName, ErrTooMany, ErrClosed, and those of [sandbox.New] and [sandbox.Transport.Shield].
func (r *Registry) Open(ctx context.Context, name string, spec *Spec) (*Session, error) {
	for {
		s, err := r.find(ctx, name, spec)
		if err != nil {
			return nil, &Error{Op: "open", Session: name, Err: err, Remedy: r.remedy(err)}
		}
		if s.keep() {
			return s, nil
		}
		select {
		case <-s.over:
		case <-ctx.Done():
			return nil, &Error{Op: "open", Session: name, Err: fmt.Errorf("it is being closed: %w", context.Cause(ctx))}
		}
	}
}

// find returns the session of that name, or makes it.
func (r *Registry) find(ctx context.Context, name string, spec *Spec) (*Session, error) {
	if !names().MatchString(name) {
		return nil, ErrName
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sessions[name]; s != nil {
		return s, nil
	}
	return r.make(ctx, name, spec)
}

// make makes a session. The caller holds mu.
func (r *Registry) make(ctx context.Context, name string, spec *Spec) (*Session, error) {
	if r.closed {
		return nil, ErrClosed
	}
	if len(r.sessions) >= r.opts.MaxSessions {
		return nil, fmt.Errorf("%w: %d", ErrTooMany, r.opts.MaxSessions)
	}
	s, err := newSession(r, name, spec)
	if err == nil {
		err = s.record(ctx, Record{Kind: OpenRecord, Action: Action{Dir: s.opts.Dir}})
	}
	if err != nil {
		return nil, err
	}
	if told, ok := r.lapsed[name]; ok {
		delete(r.lapsed, name)
		r.notices.add(name, told)
	}
	r.sessions[name] = s
	r.reaper.soon()
	return s, nil
}

func (r *Registry) remedy(err error) string {
	if !errors.Is(err, ErrTooMany) {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return "close one: there are " + strings.Join(slices.Sorted(maps.Keys(r.sessions)), ", ")
}

// Get returns the session of that name. The error is ErrNotFound if there is none.
func (r *Registry) Get(name string) (*Session, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sessions[name]
	if s == nil {
		remedy := "there are no sessions"
		if len(r.sessions) > 0 {
			remedy = "there are " + strings.Join(slices.Sorted(maps.Keys(r.sessions)), ", ")
		}
		return nil, &Error{Op: "get", Session: name, Err: ErrNotFound, Remedy: remedy}
	}
	return s, nil
}

// List returns what is known of the sessions, by name. It waits for none of them.
func (r *Registry) List() []Info {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.sessions))
	r.mu.Unlock()
	infos := make([]Info, len(all))
	for i, s := range all {
		infos[i] = s.info()
	}
	slices.SortFunc(infos, func(a, b Info) int { return cmp.Compare(a.Name, b.Name) })
	return infos
}

// Jobs returns the registry of the jobs of all sessions, which it opens if it is the first
// to ask. Each has the name of its session. It is closed by Close. What is started there
// directly is in no session, and under no policy.
func (r *Registry) Jobs() (*jobs.Registry, error) {
	r.opening.Lock()
	defer r.opening.Unlock()
	if r.jobs != nil {
		return r.jobs, nil
	}
	dir, err := r.place("jobs")
	if err != nil {
		return nil, err
	}
	opts := *r.opts.Jobs
	opts.Bash, opts.Transport, opts.Ladder, opts.Interrupts = r.opts.Shell.Bash, r.opts.Shell.Transport, r.opts.Shell.Ladder, r.opts.Shell.Interrupts
	opts.Env = []string{} // A job has that of its session.
	opts.Logger = cmp.Or(opts.Logger, r.opts.Logger)
	opts.OnHistory = r.historyOf
	if also := r.opts.Jobs.OnHistory; also != nil {
		opts.OnHistory = func(e jobs.Event) {
			r.historyOf(e)
			also(e)
		}
	}
	if r.jobs, err = jobs.Open(dir, &opts); err != nil {
		r.jobs = nil
		return nil, err
	}
	return r.jobs, nil
}

// Terminals returns the registry of the terminals of all sessions, as Jobs does.
func (r *Registry) Terminals() (*terminal.Registry, error) {
	r.opening.Lock()
	defer r.opening.Unlock()
	if r.terminals != nil {
		return r.terminals, nil
	}
	dir, err := r.place("terminals")
	if err != nil {
		return nil, err
	}
	opts := *r.opts.Terminals
	opts.Transport, opts.Interrupts = r.opts.Shell.Transport, r.opts.Shell.Interrupts
	opts.Env = []string{} // As above.
	opts.Logger = cmp.Or(opts.Logger, r.opts.Logger)
	if r.terminals, err = terminal.Open(dir, &opts); err != nil {
		r.terminals = nil
		return nil, err
	}
	r.terminals.Observe(r.programEnded) // Until it is closed.
	if r.opts.StateDir != "" {
		if r.attach, err = remote.Serve(r.terminals); err != nil {
			r.opts.Logger.Warn("limpet: nobody else can attach to the terminals", "err", err)
		}
	}
	return r.terminals, nil
}

// place is the directory for what sessions share. The caller holds opening.
func (r *Registry) place(name string) (string, error) {
	r.mu.Lock()
	closed := r.closed
	r.mu.Unlock()
	if closed {
		return "", &Error{Op: "open the " + name, Err: ErrClosed}
	}
	if r.opts.StateDir != "" {
		return filepath.Join(r.opts.StateDir, name), nil
	}
	if r.program == nil {
		program, err := rundir.Acquire(r.opts.Shell.RuntimeDir, rand.Text(), false)
		if err != nil {
			return "", &Error{Op: "open the " + name, Err: err}
		}
		r.program, r.dir = program, filepath.Join(program.Path, rand.Text())
	}
	return filepath.Join(r.dir, name), private.MkdirAll(r.dir)
}

// opened are the registries as far as they are open; nil otherwise.
func (r *Registry) opened() (*jobs.Registry, *terminal.Registry) {
	r.opening.Lock()
	defer r.opening.Unlock()
	return r.jobs, r.terminals
}

// Info is what is known of a session at one moment. It is a value.
type Info struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	Dir   string `json:"dir"` // that its shell is in, or starts in; empty means that of the program

	// Running is the script that runs now; of several the first that came.
	Running string `json:"running,omitempty"`

	// Holder is who asked for that, as its [command.Request.Caller] says, in one line of at most 200 characters; empty if it says nothing. It
	// is not checked.
	Holder string `json:"holder,omitempty"`

	Created  time.Time `json:"created"`
	LastUsed time.Time `json:"last_used"`

	// SinceUsed is how long ago that was, by the machine that has the session: its clock may be another one, or have been set
	// since. 0 from limpets that are older.
	SinceUsed time.Duration `json:"since_used_ns,omitempty"`

	Commands int `json:"commands"` // that were run, or wait for their turn

	// Jobs and Terminals are how many of them run.
	Jobs      int `json:"jobs"`
	Terminals int `json:"terminals"`

	Checkpoints []string `json:"checkpoints,omitempty"`
	Policy      string   `json:"policy,omitempty"` // its name
}

const mostHolder = 200

// State says whether a session is in use.
type State string

// The states.
const (
	Unused State = "new" // its shell was not started yet
	Idle   State = "idle"
	Busy   State = "busy" // a command runs, or several wait for their turn
)
