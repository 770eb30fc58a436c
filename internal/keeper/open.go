package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
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
	givenPatience = time.Minute // with a state, which a shell may take 15 s and more to read
	endPatience   = 10 * time.Second
)

// Kept is a session that is kept. Disconnect it: the session stays. Its Close ends the session. Its
// methods are safe for concurrent use. When the session is upgraded it leads to the new keeper.
type Kept struct {
	*wire.Session
	Record Record // of the keeper that it was opened with

	Made bool // by this call
	Was  *End // how the one of that name before it has ended, if that is not long ago

	before []string // the directories of the sessions of that name before it; see forgetBefore

	then     *session.Info // see InfoThen; may be nil
	client   *wire.Client
	place    Place
	registry *Registry              // of this machine; nil if the place is another
	at       atomic.Pointer[string] // the ID of the keeper that it leads to
}

// Process returns the process that keeps the session now, on this machine: an upgrade makes another one.
func (k *Kept) Process() (proc.ID, error) {
	record, err := readRecord(filepath.Join(k.registry.dir, *k.at.Load()))
	if err != nil {
		return proc.ID{}, err
	}
	st, err := proc.Read(record.PID)
	return st.ID(), err
}

// Disconnect lets go of the session, which stays.
func (k *Kept) Disconnect() { k.client.Disconnect() }

// Fork makes a session of another name, which is kept by a process of its own, with the state that this one
// has now. It waits for the command that runs; ctx bounds that, and the start. The Handle is a [*Kept] with
// a connection of its own, which the caller must Disconnect: this one's Disconnect does not. Errors are
// session.ErrExists, ErrName and ErrTooMany.
func (k *Kept) Fork(ctx context.Context, name string) (session.Handle, error) {
	if _, err := k.Session.Fork(ctx, name); err != nil { // What it returns goes to the wrong process.
		return nil, err
	}
	fork, err := k.place.Session(ctx, name, nil)
	if err != nil {
		return nil, err
	}
	return fork, nil
}

// Session returns the session of that name, and makes it if there is none. A nil spec means that it
// is not made: the error is session.ErrNotFound then. ctx bounds the search and the start.
func (r *Registry) Session(ctx context.Context, name string, spec *Spec) (*Kept, error) {
	return r.open(ctx, "open", name, spec, false)
}

// open is Session, of which a session that is to be fresh is not found: the error is session.ErrExists
// then. What was started for one that the caller does not get is ended, unless others may have it by now.
func (r *Registry) open(ctx context.Context, op, name string, spec *Spec, fresh bool) (*Kept, error) {
	fail := func(err error) (*Kept, error) {
		if e, ok := errors.AsType[*session.Error](err); ok {
			if fresh {
				e.Op = op
			}
			return nil, e
		}
		return nil, &session.Error{Op: op, Session: name, Err: err, Remedy: cmp.Or(remedyOf(err), endingRemedy(name, err))}
	}
	if !session.ValidName(name) {
		return fail(session.ErrName)
	}
	for {
		k, err := r.look(ctx, name, spec, fresh)
		if err != nil {
			return fail(err)
		}
		err = k.greet(ctx)
		if err != nil && fresh {
			err = cmp.Or(k.failed(ctx, err), err)
			r.giveUp(k)
			return fail(err)
		}
		switch {
		case err == nil:
			k.forgetBefore()
			return k, nil
		case k.Made && errors.Is(err, wire.ErrGone): // It could not start, and is remembered with all that those before it were.
			k.Disconnect()
			if _, err := readRecord(k.dir()); err == nil {
				k.forgetBefore()
			}
			return fail(k.failed(ctx, err))
		case errors.Is(err, wire.ErrMoved): // Just now: another one is there.
			k.Disconnect()
			continue
		case !errors.Is(err, wire.ErrGone) && !errors.Is(err, session.ErrClosed):
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

func (k *Kept) dir() string { return filepath.Join(k.registry.dir, k.Record.ID) }

// failed returns what a keeper said that could not start; nil if it is not gone.
func (k *Kept) failed(ctx context.Context, err error) error {
	if !errors.Is(err, wire.ErrGone) {
		return nil
	}
	_ = k.registry.awaitEnd(ctx, k.Record.ID) // Its socket is gone before it says why. One that does not end says no more.
	return fmt.Errorf("its keeper ended at once: %s", cmp.Or(readSaid(k.dir()), "it said nothing"))
}

// look finds the keeper of a name, or starts one, which must not be there if it is to be fresh.
func (r *Registry) look(ctx context.Context, name string, spec *Spec, fresh bool) (*Kept, error) {
	list, err := r.entries()
	if err != nil {
		return nil, err
	}
	k, err := r.existing(name, list)
	switch {
	case err == nil && fresh:
		return nil, session.ErrExists
	case !errors.Is(err, session.ErrNotFound):
		return k, err
	case spec == nil:
		return r.lookAgain(ctx, name, err)
	}
	if err := r.make(); err != nil {
		return nil, err
	}
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if list, err = r.sweep(); err != nil {
		return nil, err
	}
	for _, e := range list {
		if e.err != nil { // It lives, and may have the name.
			return nil, fmt.Errorf("who has which name cannot be read: %w", e.err)
		}
	}
	switch k, err = r.existing(name, list); { // It may have been made meanwhile.
	case err == nil && fresh:
		return nil, session.ErrExists
	case !errors.Is(err, session.ErrNotFound):
		return k, err
	}
	var names []string
	for _, e := range list {
		if e.alive && !e.other {
			names = append(names, e.record.Name)
		}
	}
	if len(names) >= MostSessions {
		slices.Sort(names)
		return nil, &session.Error{Op: "open", Session: name, Err: fmt.Errorf("%w: %d are kept", session.ErrTooMany, len(names)), Remedy: "close one: there are " + strings.Join(names, ", ")}
	}
	var was *End
	var before []string // of that name; sweep has left those that it remembers
	for _, e := range list {
		if !e.alive && e.record.Name == name {
			was, before = e.record.End, append(before, e.dir)
		}
	}
	record, err := r.start(name, *spec, before)
	if err != nil {
		return nil, err
	}
	k = r.kept(record)
	k.Made, k.Was, k.before = true, was, before
	return k, nil
}

// lookAgain makes sure that there is no keeper of a name, which one may have taken over while the entries
// were read: not while this holds the names.
func (r *Registry) lookAgain(ctx context.Context, name string, none error) (*Kept, error) {
	unlock, err := r.lock(ctx)
	if err != nil {
		return nil, none // Nobody has kept any, or it cannot be told.
	}
	defer unlock()
	list, err := r.entries()
	if err != nil {
		return nil, err
	}
	return r.existing(name, list)
}

// existing returns the keeper of a name that lives.
func (r *Registry) existing(name string, list []entry) (*Kept, error) {
	e := &session.Error{Op: "find", Session: name, Err: session.ErrNotFound}
	for _, one := range list {
		switch {
		case one.err != nil, one.record.Name != name, one.other:
		case one.alive:
			return r.kept(one.record), nil
		default:
			e.Err = fmt.Errorf("%w: the last one %s", session.ErrNotFound, dead(one).End)
		}
	}
	return nil, e
}

// kept is a client of a keeper.
func (r *Registry) kept(record Record) *Kept {
	k := &Kept{Record: record, place: r, registry: r}
	k.at.Store(&record.ID)
	k.client = wire.NewClient(k.dial)
	k.client.Follow = k.follow
	k.Session = k.client.Session(record.Name)
	return k
}

func (k *Kept) dial(ctx context.Context) (net.Conn, error) {
	return socket.Dial(ctx, filepath.Join(k.registry.dir, *k.at.Load()), socketFile)
}

// follow leads to the keeper that has the session now, if that is another one, or if another goroutine has
// found it just now. A new session of the same name is not the same.
func (k *Kept) follow(ctx context.Context) bool {
	list, err := k.registry.entries()
	if err != nil {
		return false
	}
	for _, e := range list {
		if e.err != nil || e.other || !e.alive || e.record.SessionID() != k.Record.SessionID() {
			continue
		}
		k.client.CloseIdleConnections() // They may lead to the old one, also those that another program's requests are sent on by.
		if e.record.ID != *k.at.Load() {
			k.at.Store(&e.record.ID)
			return true
		}
		conn, err := k.dial(ctx)
		if err == nil {
			_ = conn.Close() // It was to see whether somebody is there.
		}
		return err == nil
	}
	return false
}

// greet makes sure that the keeper answers, and that it is this one.
func (k *Kept) greet(ctx context.Context) error {
	patience := helloPatience
	switch {
	case k.Record.State == Starting && k.Record.Given:
		patience = givenPatience
	case k.Record.State == Starting:
		patience = startPatience
	}
	limited, cancel := context.WithTimeoutCause(ctx, patience, ErrMute)
	defer cancel()
	said, err := k.client.Hello(limited)
	if errors.Is(err, ErrMute) {
		return &session.Error{
			Op: "open", Session: k.Record.Name, Err: fmt.Errorf("%w in %v", ErrMute, patience),
			Remedy: forceRemedy(k.Record.Name),
		}
	}
	if err == nil && said.ID != k.Record.ID {
		return fmt.Errorf("%w: another one answers there", wire.ErrGone)
	}
	return err
}

// CloseByForce is the command line that ends a session whose keeper may never do what it was asked for, without the name. Remedies
// have it.
const CloseByForce = "limpet session close --force"

// forceRemedy is what to do about a keeper that may never do what it was asked for.
func forceRemedy(name string) string {
	return "if it is stuck, " + CloseByForce + " " + name + " ends it, with all that runs in it"
}

// errEnding means that a keeper has ended its session, or is about to, and still lives.
var errEnding = errors.New("it is being closed, and its keeper does not end")

func endingRemedy(name string, err error) string {
	if errors.Is(err, errEnding) {
		return forceRemedy(name)
	}
	return ""
}

// awaitEnd waits until a keeper that has ended its session is gone, or one whose socket was removed has
// made it anew.
func (r *Registry) awaitEnd(ctx context.Context, id string) error {
	const pause = 5 * time.Millisecond
	dir := filepath.Join(r.dir, id)
	_, err := os.Lstat(filepath.Join(dir, socketFile))
	lost := errors.Is(err, fs.ErrNotExist)
	for began := time.Now(); alive(dir); time.Sleep(pause) {
		if _, err := os.Lstat(filepath.Join(dir, socketFile)); lost && err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if patience := cmp.Or(r.endPatience, endPatience); time.Since(began) > patience {
			return fmt.Errorf("%w in %v", errEnding, patience)
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
		switch {
		case e.err != nil || e.other:
		case e.alive:
			list = append(list, Listed{Record: e.record, Alive: true})
		case all:
			list = append(list, Listed{Record: dead(e)})
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, helloPatience, ErrMute)
	defer cancel()
	var asking sync.WaitGroup // All at once: some may be mute.
	for i := range list {
		if one := &list[i]; one.Alive {
			asking.Go(func() {
				k := r.kept(one.Record)
				defer k.Disconnect()
				if info, err := k.Info(ctx); err == nil {
					one.Info = &info
				}
			})
		}
	}
	asking.Wait()
	return list, nil
}

// Close ends a session, and waits until its keeper is gone: the name is free then. The end of ctx ends the wait, and not the Kept, which others may
// use.
func (r *Registry) Close(ctx context.Context, k *Kept) error {
	if err := k.CloseContext(ctx); err != nil && !errors.Is(err, wire.ErrGone) {
		return err
	}
	if err := r.awaitEnd(ctx, *k.at.Load()); err != nil {
		return &session.Error{Op: "close", Session: k.Record.Name, Err: err, Remedy: endingRemedy(k.Record.Name, err)}
	}
	return nil
}

// Forget leaves nothing of a session that was closed, which else is remembered for who asks for its name.
func (r *Registry) Forget(k *Kept) {
	if dir := filepath.Join(r.dir, *k.at.Load()); !alive(dir) {
		_ = os.RemoveAll(dir) // Best effort: sweep forgets it in a week.
	}
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
	dir := filepath.Join(r.dir, record.ID)
	pid := pidOf(dir)
	st, err := proc.Read(pid)
	if err != nil || !holds(pid, filepath.Join(dir, lockFile)) {
		const patience = time.Second // One that was killed has the lock for a moment.
		soon, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		if r.awaitEnd(soon, record.ID) == nil {
			return nil
		}
		return fmt.Errorf("its keeper (pid %d) is not to be seen from here: is it in another container?", pid)
	}
	if err := proc.Signal(st.ID(), syscall.SIGKILL); err != nil {
		return err
	}
	err = r.awaitEnd(ctx, record.ID)
	if errors.Is(err, errEnding) {
		err = fmt.Errorf("its keeper (pid %d) was killed, and does not end: it hangs in the kernel, as on a disk or a network that does not answer; when it ends, the name is free", pid)
	}
	return err
}
