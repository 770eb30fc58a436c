package session

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/shell"
)

// Checkpoint is a state of a session's shell with a name.
type Checkpoint struct {
	Name  string
	State shell.State
}

// Fork makes a session of another name, with the directory, the variables, the functions
// and the options that this one has now, and the same policy. From then on they are
// separate. Jobs, terminals, background processes and checkpoints are not forked. It waits
// for the command that runs; ctx bounds that. Errors are ErrExists, ErrName, ErrTooMany,
// ErrClosed.
func (s *Session) Fork(ctx context.Context, name string) (Handle, error) {
	state, err := s.State(ctx)
	if err != nil {
		return nil, err
	}
	fork, err := s.r.fork(ctx, s, name, state)
	if err != nil {
		return nil, &Error{Op: "fork to", Session: name, Err: err, Remedy: s.r.remedy(err)}
	}
	return fork, nil
}

// fork makes a session that begins with a state.
func (r *Registry) fork(ctx context.Context, from *Session, name string, state shell.State) (*Session, error) {
	if !names().MatchString(name) {
		return nil, ErrName
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sessions[name] != nil {
		return nil, ErrExists
	}
	spec := &Spec{Dir: from.opts.Dir, Policy: from.policy, State: &state}
	if from.approver != nil {
		spec.approver = from.approver.Fork()
	}
	return r.make(ctx, name, spec)
}

// State returns the state that the session's shell has now, for [Spec.State], also of another
// registry. It starts the shell if nobody has. It waits for the command that runs; ctx bounds that.
func (s *Session) State(ctx context.Context) (shell.State, error) {
	sh, done, err := s.use(ctx)
	if err != nil {
		return shell.State{}, err
	}
	defer done()
	state, err := sh.Checkpoint(ctx)
	return state, s.ofShell("fork", err)
}

// Checkpoint keeps the state that the session's shell has now under a name, for Rollback.
// One of that name is replaced; of more than Options.MaxCheckpoints the oldest goes. It
// waits for the command that runs; ctx bounds that.
func (s *Session) Checkpoint(ctx context.Context, name string) error {
	if !names().MatchString(name) {
		return &Error{Op: "checkpoint", Session: s.name, Err: fmt.Errorf("checkpoint %q: %w", name, ErrName)}
	}
	sh, done, err := s.use(ctx)
	if err != nil {
		return err
	}
	defer done()
	state, err := sh.Checkpoint(ctx)
	if err != nil {
		return s.ofShell("checkpoint", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkpoints = slices.DeleteFunc(s.checkpoints, func(c Checkpoint) bool { return c.Name == name })
	s.checkpoints = append(s.checkpoints, Checkpoint{name, state})
	if extra := len(s.checkpoints) - s.r.opts.MaxCheckpoints; extra > 0 {
		s.checkpoints = slices.Delete(s.checkpoints, 0, extra)
	}
	return nil
}

// Checkpoints are those of the session, the oldest first, for [Spec.Checkpoints].
func (s *Session) Checkpoints() []Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.checkpoints)
}

// Rollback brings the session's shell back to a checkpoint, which stays: directory,
// variables, functions, aliases, options, traps and umask. Files are as they are, jobs and
// terminals run on, and so do background processes of the shell, which are no jobs of its
// new bash: the Restart says what was lost so. It waits for the command that runs; ctx
// bounds that. The error is ErrNotFound if there is no such checkpoint.
func (s *Session) Rollback(ctx context.Context, name string) (*command.Restart, error) {
	s.mu.Lock()
	var have []string
	var state shell.State
	for _, c := range s.checkpoints {
		have = append(have, c.Name)
		if c.Name == name {
			state = c.State
		}
	}
	s.mu.Unlock()
	if state.IsZero() {
		e := &Error{Op: "roll back", Session: s.name, Err: fmt.Errorf("checkpoint %q: %w", name, ErrNotFound), Remedy: "there are no checkpoints"}
		if len(have) > 0 {
			e.Remedy = "there are " + strings.Join(have, ", ")
		}
		return nil, e
	}
	sh, done, err := s.use(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	restart, err := sh.Restore(ctx, state)
	return restart, s.ofShell("roll back", err)
}
