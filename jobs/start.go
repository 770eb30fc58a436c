package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Start starts a job, and returns when it runs. ctx bounds the start, and not the job.
// After an error there is no job. Errors are an [*Error] around what is wrong: with
// the Spec, [ErrTooMany], [*transport.DirError], [*transport.StartError].
func (r *Registry) Start(ctx context.Context, spec Spec) (Job, error) {
	fail := func(err error, remedy string) (Job, error) {
		return Job{}, &Error{Op: "start", Err: err, Remedy: remedy}
	}
	if err := r.mine("start", ""); err != nil {
		return Job{}, err
	}
	ctx, done, err := r.starting(ctx)
	if err != nil {
		return fail(err, "")
	}
	defer done()
	spec, err = r.resolve(spec)
	if err == nil {
		err = transport.Shield(spec.Transport, r.dir)
	}
	if err != nil {
		return fail(err, "")
	}
	bash, err := transport.FindBash(r.opts.Bash)
	if err == nil {
		err = transport.CheckBash(ctx, bash)
	}
	if err != nil {
		return fail(err, "")
	}
	_, here := spec.Transport.(local.Transport)
	if !here && spec.Lifetime == Detached {
		return fail(fmt.Errorf("%w: only a job that runs on this machine outside of a sandbox can outlive its program", ErrNotPossible),
			"leave Lifetime empty: then the job ends with the program")
	}
	j, err := r.make(spec)
	if err != nil {
		return fail(err, "")
	}
	defer close(j.ready)
	if here {
		err = j.spawn(ctx, r, bash, spec)
	} else {
		err = j.host(ctx, r, bash, spec)
	}
	if err != nil {
		r.drop(j)
		return fail(err, "")
	}
	r.note(j, Event{Kind: Started})
	r.look(j)
	f, _ := j.read() // It runs, whatever can be read.
	return r.present(j, &f), nil
}

// starting makes a start one that Close gives up, and waits for.
func (r *Registry) starting(ctx context.Context) (_ context.Context, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errClosed
	}
	r.starts.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { cancel(errClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		r.starts.Done()
	}, nil
}

// make makes the directory of a job, with all that was asked for, and lists it.
func (r *Registry) make(spec Spec) (*job, error) {
	s := stored{
		ID: newID(spec.Command), Command: spec.Command, Dir: spec.Dir, PTY: spec.PTY, Stdin: spec.Stdin,
		Task: spec.Task, Session: spec.Session, Labels: spec.Labels, Watch: spec.Watch, Notify: spec.Notify,
		Lifetime: spec.Lifetime, Timeout: spec.Timeout, OutputLimit: spec.OutputLimit, Retain: r.opts.Retain, Ladder: r.opts.Ladder,
		Created: time.Now(), Mark: environ.JobVar + "=" + environ.NewID(),
	}
	if spec.Notify && len(spec.Watch) > 0 {
		s.Watch = nil
		s.Warnings = append(s.Warnings, "its output is not watched: the end of a job is told, or its matches, and Notify asks for the end")
	}
	j := r.newJob(s)
	if err := r.room(j); err != nil {
		return nil, err
	}
	err := private.Mkdir(j.dir)
	if errors.Is(err, fs.ErrNotExist) { // Somebody has tidied up.
		if err = private.MkdirAll(r.dir); err == nil {
			err = private.Mkdir(j.dir)
		}
	}
	if err == nil {
		err = writeSpec(j.dir, s)
	}
	if err != nil {
		r.drop(j)
		close(j.ready) // Somebody may have found it meanwhile.
		return nil, err
	}
	return j, nil
}

// room lists the job, if fewer run than may.
func (r *Registry) room(j *job) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	running := 0
	for _, other := range r.jobs {
		if other.running() {
			running++
		}
	}
	if running >= r.opts.MaxRunning { // Some may have ended just now.
		running = 0
		for _, other := range r.jobs {
			f, err := other.read()
			if state, _ := f.state(); err == nil && !state.Finished() {
				running++
			}
		}
	}
	if running >= r.opts.MaxRunning {
		return fmt.Errorf("%w: %d; stop some, or raise Options.MaxRunning", ErrTooMany, running)
	}
	r.jobs[j.spec.ID] = j
	return nil
}

// order is what a supervisor is told of the job in any case.
func (j *job) order(r *Registry) supervisor.Order {
	return supervisor.Order{
		Dir: j.dir, Mark: j.spec.Mark, Keep: j.spec.OutputLimit, Timeout: j.spec.Timeout, Ladder: r.opts.Ladder,
		Detached: j.spec.Lifetime == Detached, Stdin: j.spec.Stdin,
	}
}

// spawn has the supervisor start the job.
func (j *job) spawn(ctx context.Context, r *Registry, bash string, spec Spec) (err error) {
	o := j.order(r)
	o.Path, o.WorkDir, o.Env = bash, spec.Dir, spec.Env
	if o.Argv, err = argv(j.dir, spec.Command); err != nil {
		return err
	}
	if spec.PTY {
		o.PTY = &supervisor.Size{Rows: spec.Size.Rows, Cols: spec.Size.Cols}
	}
	err = j.supervise(supervisor.Start(ctx, o))
	if e, ok := errors.AsType[*os.PathError](err); ok {
		if e.Op == "chdir" {
			return &transport.DirError{Dir: e.Path, Err: e.Err}
		}
		return &transport.StartError{Argv: append([]string{bash}, o.Argv[1:]...), Code: -1, Err: err, Remedy: transport.WantsBash}
	}
	return err
}

func (j *job) path(name string) string { return filepath.Join(j.dir, name) }
