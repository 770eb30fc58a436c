package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/askpass"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/transport"
)

// StartJob starts a job in the session's directory, with what its shell exports, under its
// policy. Of the spec, Dir is taken from there if it is relative, and Env is added; its
// Session is set, and so is its Transport under a policy. It waits for the
// command that runs, for what that exports; ctx bounds that and the start, and not the
// job. The job ends with the session. Get it from [Registry.Jobs].
func (s *Session) StartJob(ctx context.Context, spec jobs.Spec) (jobs.Job, error) {
	r, err := s.r.Jobs()
	if err != nil {
		return jobs.Job{}, err
	}
	of := slices.Clone[[]string]
	if spec.PTY {
		of = environ.OffTerminal
	}
	where, done, err := s.surroundings(ctx, spec.Dir, of)
	if err != nil {
		return jobs.Job{}, err
	}
	defer done()
	record, err := s.starts(ctx, Action{Kind: JobAction, Script: spec.Command, Dir: where.dir, Env: spec.Env, Live: where.live})
	if err != nil {
		return jobs.Job{}, err
	}
	spec.Session, spec.Dir, spec.Env = s.name, where.dir, append(where.env, spec.Env...)
	if where.transport != nil {
		spec.Transport = where.transport
	}
	job, err := r.Start(ctx, spec)
	record.ends(ctx, s, Record{Started: job.ID, Err: err})
	if err == nil && len(spec.Watch) > 0 && !spec.Notify {
		s.r.watch(job.ID)
	}
	return job, err
}

// StartTerminal starts a program on a terminal of its own, as StartJob does a job. There
// pagers and editors are welcome: what a shell has against them by default is left out, and
// TERM is xterm-256color. Get it from [Registry.Terminals].
func (s *Session) StartTerminal(ctx context.Context, spec terminal.Spec) (*terminal.Terminal, error) {
	r, err := s.r.Terminals()
	if err != nil {
		return nil, err
	}
	where, done, err := s.surroundings(ctx, spec.Dir, environ.OnTerminal)
	if err != nil {
		return nil, err
	}
	defer done()
	record, err := s.starts(ctx, Action{Kind: TerminalAction, Script: scriptOf(spec), Dir: where.dir, Env: spec.Env, Live: where.live})
	if err != nil {
		return nil, err
	}
	spec.Session, spec.Dir, spec.Env = s.name, where.dir, append(where.env, spec.Env...)
	if where.transport != nil {
		spec.Transport = where.transport
	}
	one, err := r.Start(ctx, spec)
	last := Record{Err: err}
	if err == nil {
		last.Started = one.Info().ID
	}
	record.ends(ctx, s, last)
	return one, err
}

// starts asks whether something may be started, and takes down that it is. Call ends on what it returns when it is started.
func (s *Session) starts(ctx context.Context, a Action) (*recorded, error) {
	r := s.recorded(a)
	_, err := s.approve(ctx, a)
	if err == nil {
		err = r.begins(ctx, s)
	}
	if err != nil {
		r.ends(ctx, s, Record{Err: err})
	}
	return r, err
}

// Jobs returns the jobs of all sessions of the registry: see [Registry.Jobs].
func (s *Session) Jobs() (jobs.Handle, error) {
	r, err := s.r.Jobs()
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Terminals returns the terminals of all sessions of the registry: see [Registry.Terminals].
func (s *Session) Terminals() (*terminal.Registry, error) { return s.r.Terminals() }

// surroundings is what a program finds that is started in a session.
type surroundings struct {
	dir       string
	env       []string
	transport transport.Transport
	live      func(context.Context) (*command.LiveState, error)
}

// surroundings asks the shell, and makes an environment of what it exports. Call done when
// the program is started.
func (s *Session) surroundings(ctx context.Context, dir string, of func(env []string) []string) (where surroundings, done func(), err error) {
	sh, done, err := s.use(ctx)
	if err != nil {
		return where, nil, err
	}
	if where.env, err = sh.Environ(ctx); err != nil {
		done()
		return where, nil, s.ofShell("use", err)
	}
	where.env = slices.DeleteFunc(askpass.Strip(of(where.env)), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return environ.Mark(name)
	})
	where.dir, where.live = under(sh.Dir(), dir), live(sh, 0)
	if s.policy == nil {
		return where, done, nil
	}
	// A sandbox has nothing of its caller's but what its policy says.
	policy := *s.policy
	policy.Env.Set = make(map[string]string, len(where.env))
	for _, entry := range where.env {
		if name, value, ok := strings.Cut(entry, "="); ok && syntax.ValidName(name) { // An exported function has another name.
			policy.Env.Set[name] = value
		}
	}
	if where.transport, err = s.sandboxed(policy); err != nil {
		done()
		return where, nil, err
	}
	return where, done, nil
}

// Background returns the processes that commands have left running in the session, in no order; none
// if its shell was not used yet. It waits for the command that runs; ctx bounds that. Linux only.
func (s *Session) Background(ctx context.Context) ([]command.Process, error) {
	s.mu.Lock()
	sh := s.sh
	s.mu.Unlock()
	if sh == nil {
		return nil, nil
	}
	return sh.Background(ctx)
}

// HandOver moves the command that runs now to the background, as a job, and returns
// without waiting for it, so that ctx means nothing here: its Do returns a
// [*BackgroundError]. The error is shell.ErrNothingRuns if there is none.
func (s *Session) HandOver(context.Context) error {
	s.mu.Lock()
	sh := s.sh
	s.mu.Unlock()
	if sh == nil {
		return shell.ErrNothingRuns
	}
	return sh.HandOver()
}

// adopt makes a job of a command that was handed over. The error is what there is to
// tell, with what else is in err.
func (s *Session) adopt(ctx context.Context, handed *shell.HandedOverError, err error) error {
	r, failed := s.r.Jobs()
	var job jobs.Job
	if failed == nil {
		// The caller may be gone: the command runs all the same.
		job, failed = r.Adopt(context.WithoutCancel(ctx), handed.Command, jobs.Spec{Session: s.name, Notify: true, Timeout: handed.Command.Left()})
	}
	if failed != nil {
		stopped := interrupt.NewError(ctx, handed.Cause, handed.Command.Stop(s.opts.Ladder))
		return errors.Join(stopped, handed.Command.Close(), fmt.Errorf("it could not run on as a job: %w", failed))
	}
	background := &BackgroundError{Cause: handed.Cause, Job: job}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		rest := slices.DeleteFunc(slices.Clone(joined.Unwrap()), func(e error) bool { return e == error(handed) })
		if len(rest) > 0 {
			return errors.Join(append([]error{background}, rest...)...)
		}
	}
	return background
}

// active is how many jobs and terminals of the session run, as far as that can be told.
func (s *Session) active() (running, terminals int, err error) {
	registry, _ := s.r.opened()
	if registry != nil {
		running, err = registry.Active(jobs.Filter{Session: s.name})
	}
	list, unknown := s.terminals()
	return running, len(list), errors.Join(err, unknown)
}

// terminals are those of the session that run.
func (s *Session) terminals() (list []*terminal.Terminal, err error) {
	_, registry := s.r.opened()
	if registry == nil {
		return nil, nil
	}
	infos, err := registry.List()
	if err != nil {
		return nil, err
	}
	for _, info := range infos {
		if info.Session != s.name || info.Owner != registry.Owner() || info.State.Ended() {
			continue
		}
		if t, err := registry.Get(info.ID); err == nil { // Else it was forgotten just now: it has ended.
			list = append(list, t)
		}
	}
	return list, nil
}
