package wire

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/session"
)

// Session is a session of another program. It does what one of this program does.
type Session struct {
	c      *Client
	name   string
	closed atomic.Bool // by this one
}

var _ session.Handle = (*Session)(nil)

// Name is that of the session.
func (s *Session) Name() string { return s.name }

// call asks for something that is done with the session.
func (s *Session) call(ctx context.Context, op, method, path string, content, value any) error {
	if s.closed.Load() {
		return s.fail("use", session.ErrClosed)
	}
	err := s.c.call(ctx, method, below(s.name)+path, content, value)
	return s.worded(ctx, op, err)
}

// worded says with what it was that a connection broke. What another program says is worded.
func (s *Session) worded(ctx context.Context, op string, err error) error {
	if err == nil {
		return nil
	}
	if same(err, context.Cause(ctx)) || isOneOf(err, ErrGone, ErrUnreachable, errClientClosed, ErrMayHaveStarted) {
		return s.fail(op, err)
	}
	return err
}

func (s *Session) fail(op string, err error) error {
	return &session.Error{Op: op, Session: s.name, Err: err}
}

// Info returns what is known of the session now.
func (s *Session) Info(ctx context.Context) (info session.Info, err error) {
	err = s.call(ctx, "look at", http.MethodGet, "", nil, &info)
	return info, err
}

// Events returns what happens behind the event with a number, and waits until there is something.
func (s *Session) Events(ctx context.Context, after int64) ([]session.Event, error) {
	return s.events(ctx, s.call, "/events", after)
}

// Noticed returns the notices behind the event with a number, and waits until there are some. It does not follow a session that has moved, as the
// numbers are those of one program: the error is ErrMoved or ErrGone then.
func (s *Session) Noticed(ctx context.Context, after int64) ([]session.Event, error) {
	return s.events(ctx, s.callOnce, "/noticed", after)
}

// callOnce is call of the program that is reached now, and of no other.
func (s *Session) callOnce(ctx context.Context, op, method, path string, content, value any) error {
	return s.worded(ctx, op, s.c.callOnce(ctx, method, below(s.name)+path, content, value))
}

func (s *Session) events(ctx context.Context, call func(ctx context.Context, op, method, path string, content, value any) error, path string, after int64) ([]session.Event, error) {
	for {
		var list []session.Event
		asked := time.Now()
		err := call(ctx, "watch", http.MethodGet, fmt.Sprintf("%s?after=%d", path, after), nil, &list)
		if err != nil || len(list) > 0 {
			return list, err
		}
		if time.Since(asked) < soonAgain && !pause(ctx, soonAgain) {
			return nil, s.worded(ctx, "watch", context.Cause(ctx))
		}
	}
}

// soonAgain is how long events are not asked for again if the answer came sooner than that and has none. A program answers so that has forgotten
// the events that it counts, as one of an older version behind a long script.
const soonAgain = time.Second

// Run is Do with a request that says no more than its script.
func (s *Session) Run(ctx context.Context, script string) (command.Result, error) {
	return s.Do(ctx, command.Request{Script: script})
}

// Interrupt stops the command that runs now, and does not wait for it.
func (s *Session) Interrupt(ctx context.Context) (bool, error) {
	var did ran
	err := s.call(ctx, "interrupt", http.MethodPost, "/interrupt", nil, &did)
	return did.Ran, err
}

// HandOver moves the command that runs now to the background.
func (s *Session) HandOver(ctx context.Context) error {
	return s.call(ctx, "hand over in", http.MethodPost, "/background", nil, &struct{}{})
}

// Fork makes a session of another name, of the same program.
func (s *Session) Fork(ctx context.Context, name string) (session.Handle, error) {
	var info session.Info
	if err := s.call(ctx, "fork", http.MethodPost, "/fork", what{Name: name}, &info); err != nil {
		return nil, err
	}
	return s.c.Session(info.Name), nil
}

// Checkpoint keeps the state of the session's shell under a name.
func (s *Session) Checkpoint(ctx context.Context, name string) error {
	return s.call(ctx, "checkpoint", http.MethodPost, "/checkpoint", what{Name: name}, &struct{}{})
}

// Rollback brings the session's shell back to a checkpoint.
func (s *Session) Rollback(ctx context.Context, name string) (*command.Restart, error) {
	var back rolledBack
	if err := s.call(ctx, "roll back", http.MethodPost, "/rollback", what{Name: name}, &back); err != nil {
		return nil, err
	}
	return back.Restart.value(), nil
}

// Reset brings the session's shell back to the state after its start.
func (s *Session) Reset(ctx context.Context) error {
	return s.call(ctx, "reset", http.MethodPost, "/reset", nil, &struct{}{})
}

// Close is CloseContext with a context that does not end.
func (s *Session) Close() error { return s.CloseContext(context.Background()) }

// CloseContext ends the session, and not the connection. It is safe to call twice. The end of ctx ends the wait: the session may end all the same.
func (s *Session) CloseContext(ctx context.Context) error {
	if s.closed.Load() {
		return nil
	}
	err := s.call(ctx, "close", http.MethodPost, "/close", nil, &struct{}{})
	if err == nil {
		s.closed.Store(true)
	}
	return err
}
