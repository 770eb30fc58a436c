package session

import (
	"context"
	"log/slog"
	"time"

	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
)

// The defaults of [Options].
const (
	DefaultMaxSessions    = 32
	DefaultMaxCheckpoints = 16
)

// Options say how sessions are made. The zero value of each field, and a nil *Options, are
// good defaults. New copies them. Negative numbers and times are taken for 0.
type Options struct {
	// Shell is how the shells of sessions are made; nil is fine. Its State is not used,
	// and its Transport only without a Policy. Its Bash, Env, RuntimeDir, Transport, Ladder and
	// Interrupts are those of jobs and terminals, too. Sessions that an agent or a person
	// types into want its Aliases.
	Shell *shell.Options

	// Policy is what all of a session is under that says nothing else: its shell, its jobs
	// and its terminals, each in a sandbox of its own. Nil means none.
	Policy *sandbox.Policy

	// StateDir is where jobs and terminals are kept, in the directories "jobs" and
	// "terminals", where other programs of the user can look at them, and attach to the
	// terminals. One program at a time can have it, and no policy may show it. Empty means
	// a directory that goes with the registry, and that others do not find.
	StateDir string

	// Jobs and Terminals are limits of theirs; nil is fine. What the Shell says about
	// where things run wins.
	Jobs      *jobs.Options
	Terminals *terminal.Options

	// MaxSessions is how many there may be. 0 means 32.
	MaxSessions int

	// MaxCheckpoints is how many a session may have. 0 means 16.
	MaxCheckpoints int

	// IdleTimeout closes a session that was not used for so long, in which no job,
	// no terminal and no background process of its shell runs. 0 means never.
	IdleTimeout time.Duration

	// Approve returns what decides about all that runs in a session, is started there, or typed to that. It is called when
	// the session is made. Nil, or a nil Approver, means that whatever somebody wants is done.
	Approve func(Approved) Approver

	// Record writes down what is done in the sessions: before it is done, and when it is over. It is called from several goroutines,
	// holds up what it is told of, and must not use the registry. What is typed to jobs and terminals is recorded by who calls [Session.Approve]
	// before. An error is logged, and the first of several in a row is a notice of the session. Nil means that nothing is recorded.
	Record func(ctx context.Context, r Record) error

	// MustRecord refuses what cannot be recorded before it is done, with the error of Record in a [*shell.RefusedError].
	MustRecord bool

	// Logger takes what an operator may want to know. Nil means silence.
	Logger *slog.Logger
}

// Spec says what is particular to a session. The zero value of each field, and a nil *Spec,
// mean what the Options say.
type Spec struct {
	// Dir is where its shell starts, unless there is a State.
	Dir string

	// State is what its shell starts with, as [Session.State] returns it. Nil means a shell that has
	// run nothing, which is also what a reset brings back.
	State *shell.State

	// Checkpoints are those that it has from the start.
	Checkpoints []Checkpoint

	// Policy is the session's own.
	Policy *sandbox.Policy

	approver Approver // of a fork
}

func (o *Options) withDefaults() Options {
	var opts Options
	if o != nil {
		opts = *o
	}
	if opts.Shell == nil {
		opts.Shell = &shell.Options{}
	}
	own := *opts.Shell
	opts.Shell = &own
	if opts.Jobs == nil {
		opts.Jobs = &jobs.Options{}
	}
	if opts.Terminals == nil {
		opts.Terminals = &terminal.Options{}
	}
	if opts.MaxSessions <= 0 {
		opts.MaxSessions = DefaultMaxSessions
	}
	if opts.MaxCheckpoints <= 0 {
		opts.MaxCheckpoints = DefaultMaxCheckpoints
	}
	opts.IdleTimeout = max(opts.IdleTimeout, 0)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Shell.Logger == nil {
		opts.Shell.Logger = opts.Logger
	}
	return opts
}
