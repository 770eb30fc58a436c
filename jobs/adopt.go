package jobs

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/transport"
)

// Foreground is a command that runs already, and was handed over by who ran it: a
// *shell.Running is one.
type Foreground interface {
	Script() string
	Dir() string
	Started() time.Time
	PID() int

	// Output is a pipe with all that it has printed, and prints. It stays the
	// Foreground's.
	Output() *os.File

	// Done is closed when it has ended and Output has all; Exit says how.
	Done() <-chan struct{}
	Exit() transport.Exit

	Stop(interrupt.Ladder) interrupt.Outcome
	Close() error
}

// Adopt makes a job of a command that runs in the foreground, with its output so far. The
// job is closed by the registry when it has ended, and lives with the program. After an
// error the command is still the caller's, and runs. Of spec, what says how to start a
// job must be left out: Command, Dir, Env, PTY, Stdin, Transport and Lifetime. As long
// as it runs, Timeout counts from now on. Of a *shell.Running the output begins with
// what the Result had, stdout first, and a signal is a code of 128+n. A command can be
// adopted once.
func (r *Registry) Adopt(ctx context.Context, command Foreground, spec Spec) (Job, error) {
	const op = "adopt"
	fail := func(err error, remedy string) (Job, error) { return Job{}, &Error{Op: op, Err: err, Remedy: remedy} }
	if err := r.mine(op, ""); err != nil {
		return Job{}, err
	}
	if spec.Command != "" || spec.Dir != "" || spec.Env != nil || spec.PTY || spec.Stdin || spec.Transport != nil ||
		spec.Lifetime != "" && spec.Lifetime != WithProgram {
		return fail(fmt.Errorf("%w: the command runs already", ErrNotPossible), "leave out of the Spec what says how to start it")
	}
	for _, j := range r.all() {
		if j.adopted() == command {
			return fail(fmt.Errorf("%w: it is a job already", ErrNotPossible), "see "+j.spec.ID)
		}
	}
	ctx, done, err := r.starting(ctx)
	if err != nil {
		return fail(err, "")
	}
	defer done()
	spec.Command = command.Script()
	if spec, err = r.resolve(spec); err != nil {
		return fail(err, "")
	}
	spec.Dir = command.Dir() // Which may be gone by now.
	j, err := r.make(spec)
	if err != nil {
		return fail(err, "")
	}
	defer close(j.ready)
	o := j.order(r)
	o.Timeout = 0 // The supervisor cannot tell the command from others of its session.
	o.Adopt = &supervisor.Adoption{Job: identify(command.PID()), Started: command.Started()}
	select {
	case <-command.Done():
		o.Adopt.Job = proc.ID{} // Its pid may be somebody else's by now.
	default:
	}
	j.mu.Lock()
	j.foreground = command // Before anybody can see it run, and stop it.
	j.mu.Unlock()
	if err = j.supervise(supervisor.Start(ctx, o, command.Output())); err != nil {
		r.drop(j)
		return fail(err, "")
	}
	r.work.Go(func() { r.awaitForeground(j, command) })
	r.note(j, Event{Kind: Adopted})
	r.look(j)
	f, _ := j.read() // It runs, whatever can be read.
	return r.present(j, &f), nil
}

// awaitForeground waits for the end of an adopted command, and stops it at its timeout.
// Registry.Close ends the command.
func (r *Registry) awaitForeground(j *job, command Foreground) {
	var timeout <-chan time.Time
	if j.spec.Timeout > 0 {
		timer := time.NewTimer(j.spec.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	alone, closing := j.supervised().Done(), r.closing
	for {
		select {
		case <-command.Done():
			r.ended(j, command.Exit())
			_ = command.Close() // It has ended.
			return
		case <-alone:
			alone = nil
			_ = command.Close() // Nobody reads what it prints: it would wait for that for ever.
		case <-closing:
			closing = nil
			_ = command.Close() // It was stopped; but who reads it may be stopped, too.
		case <-timeout:
			timeout = nil
			_ = supervisor.Stopping(j.dir, ByTimeout) // If it is gone, nobody records it.
			command.Stop(r.opts.Ladder)
		}
	}
}
