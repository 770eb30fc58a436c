package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/shell"
)

// Record is a line of what was done in the sessions of a registry, for [Options.Record]. It is a value, whose output must not be changed.
type Record struct {
	Kind RecordKind

	// Time is when it happened.
	Time time.Time

	// Session is the name of the session.
	Session string

	// ID counts what was asked for in a registry, from 1 on: the records of one action have the same. That a session is opened or closed
	// has none.
	ID int64

	// Action is what somebody wanted to do. Its Dir is where a command runs, and of OpenRecord where the shell is to start, if that was said.
	Action Action

	// Of EndRecord: how a command has ended, what it printed, as far as it was kept, and where its shell is then. ExitCode is command.CodeUnknown where
	// that is not known.
	ExitCode       int
	Elapsed        time.Duration
	Stdout, Stderr command.Output
	Dir            string

	// Started is the id of the job or of the terminal that was started, of EndRecord: they go on. Of OverRecord it is that which has ended.
	Started string

	// How says how it has ended, of OverRecord.
	How string

	// Err is what went wrong, of EndRecord, or why it was not done, of RefusedRecord.
	Err error
}

// RecordKind says what a Record is.
type RecordKind string

// The kinds of records. Each action has a BeginRecord, and then an EndRecord when it is over, or else a RefusedRecord alone; what is typed has
// no end. A job or a terminal has an OverRecord when it has ended; of a terminal whose program was ended with its session, or by Close, there is none.
const (
	OpenRecord    RecordKind = "open"
	BeginRecord   RecordKind = "begin"
	EndRecord     RecordKind = "end"
	RefusedRecord RecordKind = "refused"
	CloseRecord   RecordKind = "close"
	OverRecord    RecordKind = "over"
)

// record writes something down, if that is asked for. The error is a [*shell.RefusedError].
func (s *Session) record(ctx context.Context, one Record) error {
	o := &s.r.opts
	if o.Record == nil {
		return nil
	}
	one.Session, one.Action.Session, one.Time = s.name, s.name, time.Now()
	err := o.Record(ctx, one)
	if err == nil {
		s.unrecorded.Store(false)
		return nil
	}
	o.Logger.Warn("limpet: what is done cannot be recorded", "session", s.name, "what", string(one.Kind), "err", err)
	if o.MustRecord && (one.Kind == OpenRecord || one.Kind == BeginRecord) {
		return &shell.RefusedError{Err: fmt.Errorf("what cannot be recorded is not done: %w", err)}
	}
	if !s.unrecorded.Swap(true) {
		s.Notify("what is done here cannot be recorded: " + err.Error())
	}
	return nil
}

// recordedKey is that of an action in a context.
type recordedKey struct{}

// recorded is an action of which records are made.
type recorded struct {
	id     int64
	action Action
	begun  bool
}

// recorded returns one more action, for begins, and later ends.
func (s *Session) recorded(a Action) *recorded {
	return &recorded{id: s.r.actions.Add(1), action: a}
}

// begins takes down that an action is about to be done. An error refuses it.
func (r *recorded) begins(ctx context.Context, s *Session) error {
	if r == nil || r.begun {
		return nil
	}
	if err := s.record(ctx, Record{Kind: BeginRecord, ID: r.id, Action: r.action}); err != nil {
		return err
	}
	r.begun = true
	return nil
}

// ends takes down how an action has ended, or that it was refused.
func (r *recorded) ends(ctx context.Context, s *Session, last Record) {
	last.Kind, last.ID, last.Action = EndRecord, r.id, r.action
	if !r.begun {
		last.Kind = RefusedRecord
	}
	_ = s.record(context.WithoutCancel(ctx), last) // It is done: nothing can be refused.
}

// recordedCommand is recorded of a command, whose records begin when the shell has it.
func (s *Session) recordedCommand(ctx context.Context, req command.Request) (_ context.Context, ends func(command.Result, error)) {
	if s.r.opts.Record == nil {
		return ctx, func(command.Result, error) {}
	}
	r := s.recorded(Action{Kind: RunAction, Script: req.Script, Env: slices.Concat(req.UpdateEnv, req.Env), Unset: req.Unset})
	return context.WithValue(ctx, recordedKey{}, r), func(res command.Result, err error) {
		last := Record{ExitCode: res.ExitCode, Elapsed: res.Elapsed, Stdout: res.Stdout, Stderr: res.Stderr, Dir: res.Dir, Err: err}
		if handed, ok := errors.AsType[*BackgroundError](err); ok {
			last.Started, last.Err = handed.Job.ID, nil
		}
		r.ends(ctx, s, last)
	}
}
