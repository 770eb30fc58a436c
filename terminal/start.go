package terminal

import (
	"context"
	"fmt"
	"os"
	"time"
)

// Start starts a program on a terminal of its own, and returns when it runs. ctx bounds the
// start, and not the program. What cannot be started is written down as failed: the
// [*Error] has the ID. It wraps what is wrong: ErrNothingToRun, ErrNoProgram, ErrSize,
// [*transport.DirError], [*command.EnvError], an error of the sandbox. ErrTooMany, and
// ErrClosed of a registry that was closed before, leave nothing behind; a start that
// ctx or Close gives up is cancelled.
func (r *Registry) Start(ctx context.Context, spec Spec) (_ *Terminal, err error) {
	const op = "start"
	ctx, done, err := r.starting(ctx)
	if err != nil {
		return nil, &Error{Op: op, Err: err}
	}
	defer done()
	defer func() {
		if err != nil {
			r.stopped()
		}
	}()
	spec, wrong := r.resolve(spec)
	t, err := r.make(spec)
	if err != nil {
		return nil, &Error{Op: op, Err: err}
	}
	defer close(t.started)
	if err = wrong; err == nil {
		err = r.spawn(ctx, t, spec)
	}
	if err != nil {
		to := Failed
		if ctx.Err() != nil {
			to = Cancelled
		}
		return nil, &Error{Op: op, ID: t.id, Err: t.fail(to, err)}
	}
	return t, nil
}

// starting makes a start one that Close gives up, and waits for, if one more may run.
func (r *Registry) starting(ctx context.Context) (_ context.Context, done func(), err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, nil, errClosed
	}
	if r.running >= r.opts.MaxRunning {
		return nil, nil, fmt.Errorf("%w: %d; close some, or raise Options.MaxRunning", ErrTooMany, r.running)
	}
	r.running++
	r.starts.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.life, func() { cancel(errClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
		r.starts.Done()
	}, nil
}

// make writes down what is to be started.
func (r *Registry) make(spec Spec) (*Terminal, error) {
	if len(spec.Line) > longestArg { // Then it has failed for that.
		spec.Line = cut(spec.Line)
	}
	info := Info{
		ID: newID(spec.Argv, spec.Line), Argv: spec.Argv, Line: spec.Line, Dir: spec.Dir, Session: cut(spec.Session), Size: spec.Size,
		State: Starting, Created: time.Now(), Owner: r.owner, OwnerPID: os.Getpid(), Recording: spec.Record,
	}
	t := &Terminal{r: r, id: info.ID, started: make(chan struct{}), info: info, ended: make(chan struct{})}
	r.mu.Lock()
	err := r.ensure()
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := r.writeJSON(info.ID, recordExt, info); err != nil {
		return nil, fmt.Errorf("writing down what is started: %w", err)
	}
	r.mu.Lock()
	r.terminals[info.ID] = t
	r.mu.Unlock()
	r.observers.tell(Change{ID: info.ID, To: Starting, At: info.Created, Info: info})
	return t, nil
}

// stopped says that one less runs.
func (r *Registry) stopped() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
}
