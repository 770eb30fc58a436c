package session

import (
	"context"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/jobs"
)

// Handle is a session, wherever it is: a [*Session] is one of this program, and the session of
// another program is reached by something else that does the same, with the same errors and
// the same texts. Its methods are safe for concurrent use. Who has one need not ask where the
// session is; where that is elsewhere, each method may also fail as the way there does.
type Handle interface {
	// Name is that of the session.
	Name() string

	// Info returns what is known of the session now. It does not wait for a command.
	Info(ctx context.Context) (Info, error)

	// Run runs a script in the session's shell, and waits for it.
	Run(ctx context.Context, script string) (command.Result, error)

	// Do runs a request in the session's shell, and waits for it: see [Session.Do].
	Do(ctx context.Context, req command.Request) (command.Result, error)

	// Interrupt stops the command that runs now, and does not wait for it.
	Interrupt(ctx context.Context) (ran bool, err error)

	// HandOver moves the command that runs now to the background, as a job.
	HandOver(ctx context.Context) error

	// StartJob starts a job in the session: in its directory, with what its shell exports. Jobs
	// returns the registry that has the session's jobs, with which to look at them and to stop them. Jobs of
	// other sessions may be in it.
	StartJob(ctx context.Context, spec jobs.Spec) (jobs.Job, error)
	Jobs() (jobs.Handle, error)

	// Events returns what happens, for people who watch, behind the event with a number, and waits until there is
	// something: see [Session.Events]. Those of other sessions of the program may be among them.
	Events(ctx context.Context, after int64) ([]Event, error)

	// Noticed returns of the events those that tell a person who does not watch what has ended, or waits: see [Session.Noticed].
	Noticed(ctx context.Context, after int64) ([]Event, error)

	// Fork makes a session of another name with the state that this one has now.
	Fork(ctx context.Context, name string) (Handle, error)

	// Checkpoint keeps the state of the session's shell under a name, Rollback brings it
	// back, and Reset brings back that after its start.
	Checkpoint(ctx context.Context, name string) error
	Rollback(ctx context.Context, name string) (*command.Restart, error)
	Reset(ctx context.Context) error

	// Close ends the session, and all that runs in it. It is safe to call twice.
	Close() error
}

var _ Handle = (*Session)(nil)
