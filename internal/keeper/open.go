package keeper

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

// ErrMute means that a keeper lives and does not answer.
var ErrMute = errors.New("its keeper does not answer")

// The times that a keeper has: to answer, to start, and to be gone when it has ended its session.
const (
	helloPatience = 2 * time.Second
	startPatience = 20 * time.Second
	endPatience   = 10 * time.Second
)

// Kept is a session that is kept. Disconnect it: the session stays. Its Close ends the session.
type Kept struct {
	*wire.Session
	Record Record

	Made bool // by this call
	Was  *End // how the one of that name before it has ended, if that is not long ago

	client *wire.Client
}

// Disconnect lets go of the session, which stays.
func (k *Kept) Disconnect() { k.client.Disconnect() }

// Session returns the session of that name, and makes it if there is none. A nil spec means that it
// is not made: the error is session.ErrNotFound then. ctx bounds the search and the start.
func (r *Registry) Session(ctx context.Context, name string, spec *Spec) (*Kept, error) {
	fail := func(err error) (*Kept, error) {
		if e, ok := errors.AsType[*session.Error](err); ok {
			return nil, e
		}
		return nil, &session.Error{Op: "open", Session: name, Err: err, Remedy: remedyOf(err)}
	}
	if !session.ValidName(name) {
		return fail(session.ErrName)
	}
	for {
		k, err := r.look(name, spec)
		if err != nil {
			return fail(err)
		}
		err = k.greet(ctx)
		switch {
		case err == nil:
			return k, nil
		case k.Made && errors.Is(err, wire.ErrGone): // It could not start.
			k.Disconnect()
			return fail(fmt.Errorf("its keeper ended at once: %s", cutOr(readSaid(k.dir(r)), "it said nothing")))
		case !errors.Is(err, wire.ErrGone):
			k.Disconnect()
			return fail(err)
		}
		// It is about to end. Then the name is free.
		k.Disconnect()
		if err := r.awaitEnd(ctx, k.Record.ID); err != nil {
			return fail(err)
		}
	}
}

func cutOr(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func (k *Kept) dir(r *Registry) string { return filepath.Join(r.dir, k.Record.ID) }

// look finds the keeper of a name, or starts one.
func (r *Registry) look(name string, spec *Spec) (*Kept, error) {
	if spec != nil {
		if err := r.make(); err != nil {
			return nil, err
		}
	}
	if spec == nil {
		list, err := r.entries()
		if err != nil {
			return nil, err
		}
		return r.existing(name, list)
	}
	unlock, err := r.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	r.sweep()
	list, err := r.entries()
	if err != nil {
		return nil, err
	}
	k, err := r.existing(name, list)
	if !errors.Is(err, session.ErrNotFound) {
		return k, err
	}
	var names []string
	for _, e := range list {
		if e.alive {
			names = append(names, e.record.Name)
		}
	}
	if len(names) >= MostSessions {
		slices.Sort(names)
		return nil, &session.Error{Op: "open", Session: name, Err: fmt.Errorf("%w: %d are kept", session.ErrTooMany, len(names)), Remedy: "close one: there are " + strings.Join(names, ", ")}
	}
	record, err := r.start(name, *spec)
	if err != nil {
		return nil, err
	}
	k = r.kept(record)
	k.Made = true
	for _, e := range list { // That is told now.
		if !e.alive && e.record.Name == name {
			k.Was = e.record.End
			_ = os.RemoveAll(e.dir) // Best effort: it is told once more.
		}
	}
	return k, nil
}

// existing returns the keeper of a name that lives.
func (r *Registry) existing(name string, list []entry) (*Kept, error) {
	e := &session.Error{Op: "find", Session: name, Err: session.ErrNotFound}
	for _, one := range list {
		switch {
		case one.record.Name != name:
		case one.alive:
			return r.kept(one.record), nil
		case one.record.End != nil:
			e.Err = fmt.Errorf("%w: the last one %s", session.ErrNotFound, one.record.End)
		default:
			e.Err = fmt.Errorf("%w: the keeper of the last one was killed", session.ErrNotFound)
		}
	}
	return nil, e
}

// kept is a client of a keeper.
func (r *Registry) kept(record Record) *Kept {
	client := wire.NewClient(func(ctx context.Context) (net.Conn, error) {
		return socket.Dial(ctx, filepath.Join(r.dir, record.ID), socketFile)
	})
	return &Kept{Session: client.Session(record.Name), Record: record, client: client}
}

// greet makes sure that the keeper answers, and that it is this one.
func (k *Kept) greet(ctx context.Context) error {
	patience := helloPatience
	if k.Made {
		patience = startPatience
	}
	limited, cancel := context.WithTimeoutCause(ctx, patience, ErrMute)
	defer cancel()
	said, err := k.client.Hello(limited)
	if errors.Is(err, ErrMute) {
		return &session.Error{
			Op: "open", Session: k.Record.Name, Err: fmt.Errorf("%w (pid %d) in %v", ErrMute, k.Record.PID, patience),
			Remedy: "if it is stuck, limpet session close --force " + k.Record.Name + " ends it, with all that runs in it",
		}
	}
	if err == nil && said.ID != k.Record.ID {
		return fmt.Errorf("%w: another one answers there", wire.ErrGone)
	}
	return err
}

// awaitEnd waits until a keeper that has ended its session is gone.
func (r *Registry) awaitEnd(ctx context.Context, id string) error {
	const pause = 5 * time.Millisecond
	for began := time.Now(); alive(filepath.Join(r.dir, id)); time.Sleep(pause) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if time.Since(began) > endPatience {
			return fmt.Errorf("it is being closed, and its keeper does not end in %v", endPatience)
		}
	}
	return nil
}

// Listed is what is known of a session that is kept.
type Listed struct {
	Record Record `json:"record"`
	Alive  bool   `json:"alive"`

	// Info is nil where the keeper does not answer, or has ended.
	Info *session.Info `json:"info,omitempty"`
}

// List returns the sessions that are kept, the oldest first, and, if all are asked for, those that
// have ended and are remembered. It starts nothing.
func (r *Registry) List(ctx context.Context, all bool) ([]Listed, error) {
	entries, err := r.entries()
	if err != nil {
		return nil, &session.Error{Op: "list", Err: err}
	}
	var list []Listed
	for _, e := range entries {
		if !e.alive && !all {
			continue
		}
		one := Listed{Record: e.record, Alive: e.alive}
		if !e.alive && e.record.State != Ended {
			last := readNow(e.dir)
			one.Record.State = Ended
			one.Record.End = &End{Why: "its keeper was killed", Dir: last.Dir, Running: last.Running}
		}
		if e.alive {
			k := r.kept(e.record)
			limited, cancel := context.WithTimeoutCause(ctx, helloPatience, ErrMute)
			if info, err := k.Info(limited); err == nil {
				one.Info = &info
			}
			cancel()
			k.Disconnect()
		}
		list = append(list, one)
	}
	return list, nil
}

// Close ends a session, and waits until its keeper is gone: the name is free then.
func (r *Registry) Close(ctx context.Context, k *Kept) error {
	if err := k.Close(); err != nil && !errors.Is(err, wire.ErrGone) {
		return err
	}
	if err := r.awaitEnd(ctx, k.Record.ID); err != nil {
		return &session.Error{Op: "close", Session: k.Record.Name, Err: err}
	}
	return nil
}

// Kill ends the keeper of a name that does not answer, with all that runs in its session.
func (r *Registry) Kill(ctx context.Context, name string) error {
	list, err := r.entries()
	if err == nil {
		var k *Kept
		if k, err = r.existing(name, list); err == nil {
			k.Disconnect()
			err = r.kill(ctx, k.Record)
		}
	}
	if e, ok := errors.AsType[*session.Error](err); ok || err == nil {
		if err == nil {
			return nil
		}
		return e
	}
	return &session.Error{Op: "kill", Session: name, Err: err}
}

// kill signals the process of a keeper, which is known by what it has locked.
func (r *Registry) kill(ctx context.Context, record Record) error {
	st, err := proc.Read(record.PID)
	if err != nil || !holds(record.PID, filepath.Join(r.dir, record.ID, lockFile)) {
		if !alive(filepath.Join(r.dir, record.ID)) {
			return nil // It has ended just now.
		}
		return fmt.Errorf("its keeper (pid %d) is not to be seen from here: is it in another container?", record.PID)
	}
	if err := proc.Signal(st.ID(), syscall.SIGKILL); err != nil {
		return err
	}
	return r.awaitEnd(ctx, record.ID)
}
