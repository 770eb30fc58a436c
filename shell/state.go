package shell

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/limits"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/saved"
)

// State is what a shell has at one moment: its directory, variables, functions, aliases,
// options, traps and umask. It is a value that nothing changes any more, and can be given
// to any number of shells. The zero value is none. It holds the values of variables, which
// may be secrets: in memory alone, unless somebody writes down what MarshalBinary returns.
//
// Not in it are processes, open descriptors and files.
type State struct{ saved *saved.State }

// Dir is the directory of the shell.
func (s State) Dir() string {
	if s.saved == nil {
		return ""
	}
	return s.saved.Dir
}

// IsZero reports whether it is the zero value.
func (s State) IsZero() bool { return s.saved == nil }

// Unsaved returns what the shell had at that moment and no state has: open descriptors, and the list of
// the history. Processes are not among it: see [PersistentShell.Background].
func (s State) Unsaved() []string {
	if s.saved == nil {
		return nil
	}
	return slices.Clone(s.saved.Unsaved)
}

// MarshalBinary returns the state as bytes, for UnmarshalBinary of this version of limpet or of a later
// one. It fails for the zero value.
func (s State) MarshalBinary() ([]byte, error) {
	if s.IsZero() {
		return nil, errNoState
	}
	return s.saved.Encode(), nil
}

// UnmarshalBinary makes the state that of bytes from MarshalBinary. It refuses those that were changed,
// and leaves the state as it was then.
func (s *State) UnmarshalBinary(b []byte) error {
	state, err := saved.Decode(b)
	if err != nil {
		return fmt.Errorf("shell: %w", err)
	}
	s.saved = &state
	return nil
}

// restore is what a bash is started with. A nil State is none.
func (s *State) restore() *saved.State {
	if s == nil {
		return nil
	}
	return s.saved
}

var errNoState = errors.New("shell: the State is the zero value; Checkpoint makes one")

// Checkpoint returns the state of the shell, for [PersistentShell.Restore] or
// [Options.State]. It waits for the command that runs; ctx bounds that.
func (s *PersistentShell) Checkpoint(ctx context.Context) (State, error) {
	var state State
	err := s.ask(ctx, func(b *bash) error {
		if !b.isSaved() {
			if err := b.exchange.Renew(); err != nil {
				return err
			}
			if err := b.saveNow(ctx, b.back, saved.Nothing); err != nil {
				return err
			}
		}
		saved := b.saved.state
		saved.Begin, saved.Unsaved = b.options, b.unsavable(saved)
		state = State{&saved}
		return nil
	})
	return state, err
}

// Restore brings the shell to an earlier state, or to that of another shell: a new bash
// takes over with it. It waits for the command that runs; ctx bounds that and the start.
// What commands have left running in the background runs on, but is no job of the new
// bash: the Restart says what is lost so. After an error the next command tries again.
func (s *PersistentShell) Restore(ctx context.Context, state State) (*command.Restart, error) {
	if state.IsZero() {
		return nil, errNoState
	}
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	defer s.renewed()
	<-s.guarded
	if b := s.bash; b != nil {
		if !b.dead() {
			b.giveUp("was ended")
		}
		b.saved.have, b.saved.commands = true, b.commands // What it changed since is not wanted.
		s.bury("")
	}
	s.died.state, s.died.have, s.died.reset, s.died.asked, s.died.gone = *state.saved, true, false, true, false
	s.died.reason = "the shell was brought to another state"
	restart, err := s.resurrect(ctx)
	if err != nil {
		return nil, err
	}
	restart, s.untold = follows(s.untold, restart), nil
	s.mu.Lock()
	s.dir = s.bash.dir()
	s.mu.Unlock()
	return restart, nil
}

// Environ returns what the shell exports, as NAME=value: what a command that it runs now
// would have. It waits for the command that runs; ctx bounds that.
func (s *PersistentShell) Environ(ctx context.Context) (env []string, err error) {
	err = s.ask(ctx, func(b *bash) (err error) {
		env, err = b.environ(ctx)
		return err
	})
	return env, err
}

// Background returns the processes that commands have left running, in no order. It waits
// for the command that runs; ctx bounds that. Linux only.
func (s *PersistentShell) Background(ctx context.Context) ([]command.Process, error) {
	if err := s.take(ctx); err != nil {
		return nil, err
	}
	defer s.give()
	var running []command.Process
	for _, id := range s.orphans { // Of bashes that were replaced.
		if st, err := proc.Read(id.PID); err == nil && st.ID() == id && !st.Zombie() {
			running = append(running, command.Process{PID: id.PID, Start: id.Start, Command: proc.Command(id.PID)})
		}
	}
	if s.bash.dead() {
		return running, nil // What it has left is found when it is replaced.
	}
	return append(running, s.bash.jobs()...), nil
}

// ask asks bash something that is no command. If bash is found to have ended meanwhile, the
// one that takes over is asked.
func (s *PersistentShell) ask(ctx context.Context, question func(*bash) error) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	<-s.guarded
	restart, err := s.ensure(ctx)
	s.untold = follows(s.untold, restart)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return limits.NotBegun(ctx)
	}
	if err = question(s.bash); err == nil || !s.bash.dead() {
		return err
	}
	s.untold = s.replace("bash ended while it was idle", s.untold)
	if s.untold.Err != nil {
		return s.untold.Err
	}
	return question(s.bash)
}
