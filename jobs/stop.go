package jobs

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/interrupt"
)

// Why a job was stopped, in [Exit.Stopped].
const (
	ByTimeout  = supervisor.ByTimeout
	ByRequest  = supervisor.ByRequest
	ByProgram  = supervisor.ByProgram
	ByShutdown = supervisor.ByShutdown
)

// Stopped says what became of a job that was stopped.
type Stopped struct {
	Job     Job               `json:"job"`
	Outcome interrupt.Outcome `json:"outcome"`
}

// Stop ends a job by Options.Ladder, with all that it has started, and returns when
// that is done. The job stays to be looked at. The error is [ErrFinished] if neither it
// nor anything that it left ran any more, and [ErrRunning] if something still does. ctx does not end the ladder, once it has
// begun.
func (r *Registry) Stop(ctx context.Context, id string) (Stopped, error) {
	if err := r.mine("stop", id); err != nil {
		return Stopped{}, err
	}
	j, job, err := r.get("stop", id)
	if err != nil {
		return Stopped{}, err
	}
	if job.State.Finished() && !job.Leftover {
		r.saw(j, job)
		return Stopped{Job: job}, &Error{Op: "stop", ID: id, Err: ErrFinished, Remedy: "it ended before: " + job.Exit.String()}
	}
	if ctx.Err() != nil {
		return Stopped{Job: job}, &Error{Op: "stop", ID: id, Err: context.Cause(ctx)}
	}
	s := r.end(ctx, j, ByRequest)
	r.saw(j, s.Job)
	switch {
	case s.Job.State.Finished() && !s.Job.Leftover:
		return s, nil
	case ctx.Err() != nil:
		return s, &Error{Op: "stop", ID: id, Err: context.Cause(ctx)}
	}
	return s, &Error{Op: "stop", ID: id, Err: ErrRunning, Remedy: "what hangs in the kernel, or is another user's, cannot be ended: Outcome.Left has it; else try again"}
}

// StopAll stops the jobs of the filter that run, at the same time, as for a task that
// was given up, and returns when they have ended. An empty filter is an error: see
// [Filter].
func (r *Registry) StopAll(ctx context.Context, filter Filter) ([]Stopped, error) {
	if err := r.mine("stop", ""); err != nil {
		return nil, err
	}
	if filter.empty() {
		return nil, &Error{Op: "stop", Err: errNoFilter, Remedy: "set Filter.All to stop all jobs"}
	}
	jobs, err := r.List(filter)
	if err != nil {
		return nil, err
	}
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		stopped []Stopped
		errs    []error
	)
	for _, job := range jobs {
		if job.State.Finished() && !job.Leftover {
			continue
		}
		all.Go(func() {
			s, err := r.Stop(ctx, job.ID)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				stopped = append(stopped, s)
			} else if !errors.Is(err, ErrFinished) && !errors.Is(err, ErrNotFound) {
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	return stopped, errors.Join(errs...)
}

// recordPatience is how long a supervisor may take to record the end of a job that was
// stopped.
const recordPatience = 5 * time.Second

// end ends a job, and waits until that is recorded.
func (r *Registry) end(ctx context.Context, j *job, why string) Stopped {
	f, err := j.read()
	if err != nil {
		return Stopped{}
	}
	if job := r.present(j, &f); job.State.Finished() && !job.Leftover {
		return Stopped{Job: job}
	}
	if supervisor.Stopping(j.dir, why) != nil { // It is gone: we record it, or mind does.
		j.mu.Lock()
		j.stopped = why
		j.mu.Unlock()
	}
	_ = proc.Signal(f.process.Supervisor, syscall.SIGCONT) // Somebody may have stopped it, the job for one. It may be gone.
	r.note(j, Event{Kind: StopAsked, Why: why})
	var s Stopped
	if foreground := j.adopted(); foreground != nil {
		s.Outcome = foreground.Stop(r.opts.Ladder) // It knows what of its session is its own.
	} else {
		s.Outcome = interrupt.Stop(r.opts.Ladder, supervisor.Target{Process: f.process, Mark: j.spec.Mark})
	}
	if f.exit == nil && !f.present.Supervisor && len(s.Outcome.Left) == 0 {
		exit := supervisor.Exit{Code: -1, Unknown: true, Killed: f.killed, Stopped: why, Output: f.log.End}
		exit.EndedNow()
		r.recordExit(j, exit)
	}
	const pause = 2 * time.Millisecond
	for began := time.Now(); ; time.Sleep(pause) {
		f, err := j.read()
		if err != nil {
			return s
		}
		r.settle(j, &f, true)
		s.Job = r.present(j, &f)
		if s.Job.State.Finished() && !s.Job.Leftover || time.Since(began) > recordPatience || ctx.Err() != nil {
			return s
		}
	}
}

// Forget removes a finished job, with its output. The error is [ErrRunning] if it, or
// something that it left, still runs.
func (r *Registry) Forget(id string) error {
	if err := r.mine("forget", id); err != nil {
		return err
	}
	j, job, err := r.get("forget", id)
	if err != nil {
		return err
	}
	if !job.State.Finished() || job.Leftover {
		return &Error{Op: "forget", ID: id, Err: ErrRunning, Remedy: "stop it first"}
	}
	r.queue.withdraw(j)
	r.drop(j)
	return nil
}
