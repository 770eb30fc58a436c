package session

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/terminal"
)

// Action is what somebody wants to do in a session.
type Action struct {
	Session string
	Kind    ActionKind

	// Script is what bash is to run; of Input it is what is to be typed.
	Script string

	// Dir is where; empty for Input.
	Dir string

	// Env and Unset are what else its environment is, as command.Request and jobs.Spec have it: "NAME=value", and names.
	Env, Unset []string

	// Input is the id of the job or of the terminal that it is typed to.
	Input string

	// Live returns what the session's shell has now that decides what a script means; nil where that cannot be told. It waits for the
	// command that runs: an Approver that needs it returns its error as it is. Nil for Input.
	Live func(context.Context) (*command.LiveState, error)
}

// ActionKind says what an Action is.
type ActionKind string

// The kinds of actions.
const (
	RunAction      ActionKind = "run"      // a command in the session's shell
	JobAction      ActionKind = "job"      // a job is started
	TerminalAction ActionKind = "terminal" // a program is started on a terminal
	InputAction    ActionKind = "input"    // something is typed to one of those
)

// Approver decides what may be done in one session. Its methods are called from several goroutines.
type Approver interface {
	// Approve returns nil, and whether that still holds at a later moment, in that directory then, or why it may not be done. It
	// may ask a person, and wait; ctx bounds that. A nil func means that it always holds.
	Approve(ctx context.Context, a Action) (holds func(dir string) bool, err error)

	// Changed says that the shell has another state, by Reset or Rollback. It holds up the shell, and may not use it.
	Changed()

	// Fork returns what decides for a session that begins with the state which this one's has now.
	Fork() Approver
}

// Approved is a session about which an Approver is to decide.
type Approved struct {
	Name   string
	Used   bool            // it begins with a state of another
	Policy *sandbox.Policy // nil if there is none
}

// passKey is that of a pass in a context: what was decided about the command that waits for its turn.
type passKey struct{}

// errChanged says that what was decided about a command does not hold any more.
var errChanged = errors.New("what was approved is not so any more")

// Approve asks the session's Approver about what is typed to a job or a terminal of the session, by its id. Without an Approver
// it is approved. What is, or is not, is recorded. What runs in the session, and is started there, asks by itself.
func (s *Session) Approve(ctx context.Context, id, text string) error {
	r := s.recorded(Action{Kind: InputAction, Script: text, Input: id})
	_, err := s.approve(ctx, r.action)
	if err == nil {
		err = r.begins(ctx, s)
	}
	if err != nil {
		r.ends(ctx, s, Record{Err: err})
	}
	return err
}

// approve asks the session's Approver, if there is one. The error is a [*shell.RefusedError].
func (s *Session) approve(ctx context.Context, a Action) (holds func(dir string) bool, err error) {
	if s.approver == nil {
		return nil, nil
	}
	a.Session = s.name
	if holds, err = s.approver.Approve(ctx, a); errors.Is(err, shell.ErrBusy) {
		return nil, err
	} else if err != nil {
		return nil, &shell.RefusedError{Err: err}
	}
	return holds, nil
}

// renewed counts that the shell has another state, and tells the Approver, and then a func of the caller's, which may be nil.
func (s *Session) renewed(then func()) func() {
	return func() {
		s.marks.count.Add(1)
		if s.approver != nil {
			s.approver.Changed()
		}
		if then != nil {
			then()
		}
	}
}

// live is Action.Live of a shell. Limit bounds the wait for the command that runs; 0: none.
func live(sh *shell.PersistentShell, limit time.Duration) func(context.Context) (*command.LiveState, error) {
	return func(ctx context.Context) (*command.LiveState, error) {
		if limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, limit, shell.ErrBusy)
			defer cancel()
		}
		state, err := sh.Live(ctx)
		switch {
		case errors.Is(err, shell.ErrBusy), ctx.Err() != nil:
			return nil, err
		case err != nil: // It cannot be told: the Approver decides without.
			return nil, nil
		}
		return &state, nil
	}
}

// approved runs a request in the shell when it was approved, in the directory and behind the commands for which it was.
func (s *Session) approved(ctx context.Context, sh *shell.PersistentShell, req command.Request) (command.Result, error) {
	if s.approver == nil {
		return sh.Do(ctx, req)
	}
	for {
		holds, err := s.approve(ctx, Action{
			Kind: RunAction, Script: req.Script, Dir: under(sh.Dir(), req.Dir), Env: slices.Concat(req.UpdateEnv, req.Env), Unset: req.Unset,
			Live: live(sh, req.TurnTimeout),
		})
		if err != nil {
			return command.Result{ExitCode: command.CodeUnknown, Dir: sh.Dir()}, err
		}
		res, err := sh.Do(context.WithValue(ctx, passKey{}, holds), req)
		if !errors.Is(err, errChanged) {
			return res, err
		}
	}
}

// admit is what the shell asks about the command that has its turn, and then a func of the caller's, which may be nil.
func (s *Session) admit(then func(context.Context, command.Request, string) error) func(context.Context, command.Request, string) error {
	return func(ctx context.Context, req command.Request, dir string) error {
		if mark, relies := ctx.Value(markKey{}).(string); relies && mark != s.marks.now() {
			return ErrStateChanged
		}
		if holds, _ := ctx.Value(passKey{}).(func(string) bool); holds != nil && !holds(dir) {
			return errChanged
		}
		if then != nil {
			if err := then(ctx, req, dir); err != nil {
				return err
			}
		}
		if r, _ := ctx.Value(recordedKey{}).(*recorded); r != nil {
			r.action.Dir = dir
			if err := r.begins(ctx, s); err != nil {
				return err
			}
		}
		if c, _ := ctx.Value(watchedKey{}).(*watchedCommand); c != nil {
			c.begins(dir)
		}
		s.marks.count.Add(1)
		return nil
	}
}

// scriptOf is what a program on a terminal is, as a script.
func scriptOf(spec terminal.Spec) string {
	if spec.Line != "" {
		return spec.Line
	}
	words := make([]string, len(spec.Argv))
	for i, arg := range spec.Argv {
		words[i] = script.Quote(strings.ReplaceAll(arg, "\x00", "")) // Such a one is refused when it is started.
	}
	return strings.Join(words, " ")
}

// under is a directory that may be relative to another.
func under(base, dir string) string {
	if filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(base, dir)
}
