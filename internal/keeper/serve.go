package keeper

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

// ErrNotForPeople means that a program was executed as a keeper by somebody else than a [Registry].
var ErrNotForPeople = errors.New("a keeper is started by limpet itself: use limpet run --session NAME")

// Serve keeps the session of a directory, until it ends. It is what a program does that a [Registry]
// has executed: it has a listener and a lock as descriptors 3 and 4, and maybe a state and a claim as 5 and
// 6.
func Serve(dir string, p Program) error {
	record, listener, lock, err := inherited(dir)
	if err != nil {
		return err
	}
	defer lock.Close() // Last: then the name is free.
	record.Version = p.Version
	k := &keeper{
		dir: dir, record: record, program: p, ended: make(chan string, 1), moved: make(chan struct{}), dropped: make(chan struct{}),
		registry: &Registry{dir: filepath.Dir(dir), Execute: p.Execute, Version: p.Version},
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	if err := k.begin(listener); err != nil {
		k.bury(err.Error())
		return err
	}
	if why := k.wait(signals); why != "" && k.close() {
		k.end(why)
	} else {
		k.leave()
	}
	return nil
}

// inherited is what the registry has left to this program.
func inherited(dir string) (Record, net.Listener, *os.File, error) {
	fail := func() (Record, net.Listener, *os.File, error) { return Record{}, nil, nil, ErrNotForPeople }
	record, err := readRecord(dir)
	if err != nil || record.State != Starting {
		return fail()
	}
	lock := os.NewFile(lockFD, "lock")
	have, err1 := lock.Stat()
	want, err2 := os.Stat(filepath.Join(dir, lockFile))
	if err1 != nil || err2 != nil || !os.SameFile(have, want) {
		return fail()
	}
	_ = writePID(lock, os.Getpid()) // Who has started it does it, too.
	file := os.NewFile(listenerFD, "listener")
	listener, err := net.FileListener(file)
	if err != nil {
		return fail()
	}
	_ = file.Close() // The listener has its own.
	from := lockFD + 1
	if record.Given {
		from = givenFD + 1
	}
	if record.From != "" {
		from = claimFD + 1
	}
	proc.CloseInherited(listenerFD, from)
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // It would remove the name that it knows.
	}
	return record, listener, lock, nil
}

// keeper is the one that this program is.
type keeper struct {
	dir    string
	record Record      // after its begin under mu, but for ID, Name, Created and Spec, which stay
	ended  chan string // why

	moved   chan struct{} // closed when another keeper has the name
	dropped chan struct{} // closed when the name will never be this one's

	registry *Registry // of its directory
	program  Program

	sessions *session.Registry
	session  atomic.Pointer[session.Session] // the one that has the keeper's name; an agent may have others
	handler  *wire.Handler
	server   *socket.Server
	noting   *noting
	journal  *journal

	mu   sync.Mutex
	last now
	soon *time.Timer // until what runs is written down; nil if nothing waits for that
	over bool

	closing bool // no other keeper takes over the session any more
}

// begin opens the session, and answers from then on.
func (k *keeper) begin(listener net.Listener) error {
	var err error
	if k.record.Given {
		if err := k.record.Spec.take(os.NewFile(givenFD, "given")); err != nil {
			return err
		}
	}
	spec := k.record.Spec
	record, err := json.Marshal(k.record) // Of any size, as it has the paths of a Spec.
	if err == nil {
		err = statedir.Reserve(k.dir, len(record)) // For how the session has ended.
	}
	if err != nil {
		return err
	}
	if k.noting, err = openNoting(k.dir); err != nil {
		return err
	}
	if k.journal, err = openJournal(k.dir); err != nil {
		return err
	}
	dir := cmp.Or(spec.Dir, "/")
	ssh := newAgent(k.stateDir())
	if _, has := os.LookupEnv(agentVar); has { // Terminals have it, too.
		entry := ssh.update([]string{agentVar + "=" + os.Getenv(agentVar)})[0]
		if err := os.Setenv(agentVar, strings.TrimPrefix(entry, agentVar+"=")); err != nil {
			return err
		}
	}
	opts, err := k.options(spec, dir, ssh)
	if err != nil {
		return err
	}
	if k.sessions, err = session.New(opts); err != nil {
		return err
	}
	first, err := k.sessions.Open(context.Background(), k.record.Name, &session.Spec{State: spec.State, Checkpoints: spec.Checkpoints})
	if err != nil {
		return errors.Join(err, k.sessions.Close())
	}
	k.session.Store(first)
	if spec.State != nil {
		// Whoever gave the state waits to be told that a shell has it.
		if _, err := first.State(context.Background()); err != nil {
			return errors.Join(err, k.sessions.Close())
		}
		k.record.Spec.State, k.record.Spec.Checkpoints = nil, nil // The session has them.
		dir = first.Dir()
	}
	if _, err := os.Stat(k.jobsDir()); err == nil && k.record.From == "" {
		// Jobs of the keeper before this one, if that was killed, are to be counted, and ended with the session.
		// That of an upgrade has them still.
		if _, err := k.sessions.Jobs(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	k.note(now{Dir: dir})
	if first, err := endStart(k.dir); err != nil || !first {
		return errors.Join(cmp.Or(err, errGivenUp), k.sessions.Close())
	}
	k.record.State, k.record.PID, k.record.Within = Running, os.Getpid(), within()
	if err := k.record.write(k.dir); err != nil {
		return errors.Join(err, k.sessions.Close())
	}
	k.handler = wire.NewHandler(k, wire.Hello{
		Version: k.record.Version, Exe: fmt.Sprintf("/proc/%d/exe", os.Getpid()), PID: os.Getpid(), ID: k.record.ID, Boot: boot(),
	})
	k.handler.Journal = k.journal
	k.handler.Closing = k.isClosing
	if p := k.program; p.Agent != nil {
		k.handler.Agent = func(ctx context.Context, _ session.Handle, options json.RawMessage, conn net.Conn) {
			p.Agent(ctx, k.sessions, k.record.Name, options, conn)
		}
	}
	k.handler.Noted = func(script, dir string) { k.note(now{Dir: dir, Running: script}) }
	k.server = socket.NewServer(k.handler, wire.Refuse)
	k.server.Serve(listener)
	if k.record.From != "" {
		go k.settle(os.NewFile(claimFD, "claim")) // It ends with the program, if not before.
	}
	return nil
}

// stateDir is where jobs and terminals are.
func (k *keeper) stateDir() string {
	return (&Registry{dir: filepath.Dir(k.dir)}).StateDir(k.record.Name)
}

func (k *keeper) jobsDir() string { return filepath.Join(k.stateDir(), "jobs") }

// worthNoting is how long a command has run that is written down: most are over before that, and need
// not wait for a disk.
const worthNoting = 5 * time.Millisecond

// note takes down where the session is, and what it runs. Without a directory it is where it was.
func (k *keeper) note(where now) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if where.Dir == "" {
		where.Dir = k.last.Dir
	}
	k.last = where
	switch {
	case where.Running == "", k.noting.last.Running != "": // What is written down has ended, unless it is the same.
		k.noting.note(where)
	case k.soon == nil && !k.over:
		k.soon = time.AfterFunc(worthNoting, func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.soon = nil
			if !k.over {
				k.noting.note(k.last)
			}
		})
	}
}

// noted ends that.
func (k *keeper) noted() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.noting.close()
}

// Get implements [wire.Sessions].
func (k *keeper) Get(_ context.Context, name string) (session.Handle, error) {
	if name != k.record.Name {
		return nil, &session.Error{Op: "find", Session: name, Err: session.ErrNotFound}
	}
	return own{k.current(), k}, nil
}

// List implements [wire.Sessions].
func (k *keeper) List(context.Context) ([]session.Info, error) { return k.sessions.List(), nil }

// own is the session, as those see it who reach it.
type own struct {
	*session.Session
	k *keeper
}

// Close ends the session, and then its keeper.
func (o own) Close() error {
	if !o.k.close() {
		return &session.Error{Op: "close", Session: o.Name(), Err: wire.ErrMoved}
	}
	o.k.say("was closed")
	return o.Session.Close()
}

// Fork starts another keeper, which begins with the state of the session. It has from this one what the
// session was made with: the environment, the umask, the limits. Its record says that it was forked from this one.
func (o own) Fork(ctx context.Context, name string) (session.Handle, error) {
	const op = "fork to"
	if !session.ValidName(name) { // Before it waits.
		return nil, &session.Error{Op: op, Session: name, Err: session.ErrName}
	}
	state, err := o.State(ctx)
	if err != nil {
		return nil, err
	}
	spec := o.k.record.Spec
	spec.Env, spec.State = os.Environ(), &state
	spec.ForkedFrom = &Parent{ID: o.k.record.SessionID(), Name: o.Name()} // Also where this one is a fork itself.
	fork, err := o.k.registry.open(ctx, op, name, &spec, true)
	if err != nil {
		return nil, err
	}
	return fork, nil
}

// say is why the session ends. The first counts.
func (k *keeper) say(why string) {
	select {
	case k.ended <- why:
	default:
	}
}

// lookEvery is how often a keeper looks for its socket.
const lookEvery = 5 * time.Second

// wait waits for the end of the session, and returns why it is; empty if it is only that of this keeper.
func (k *keeper) wait(signals <-chan os.Signal) string {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	var failed error // why there is no session, and others are
	for {
		over, asked := k.current().Done(), (<-chan string)(nil)
		if failed != nil {
			over, asked = nil, k.ended
		}
		select {
		case sig := <-signals:
			if sig == syscall.SIGHUP || sig == syscall.SIGINT || sig == syscall.SIGQUIT {
				continue // Nobody who means the session sends such.
			}
			return "was ended by " + unix.SignalName(sig.(syscall.Signal))
		case why := <-asked:
			return why
		case <-over:
			select {
			case why := <-k.ended:
				return why
			default:
				if k.isWanted() {
					failed = k.anew()
					continue
				}
				return "ended after " + spoken(k.idle()) + " idle"
			}
		case <-k.moved:
			return ""
		case <-k.dropped:
			return ""
		case <-look.C:
			switch {
			case failed == nil:
				k.noteAgents()
			case k.isWanted():
				failed = k.anew()
			default:
				return "ended when its agent had left, and no other could be had: " + failed.Error()
			}
			if !k.mend() {
				return "ended when its directory was removed"
			}
		}
	}
}

// idle is after how long it ends.
func (k *keeper) idle() time.Duration { return cmp.Or(k.record.Spec.Idle, DefaultIdle) }

// spoken is a time without the parts that are 0.
func spoken(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// mend makes a socket anew that somebody has removed. It reports false if the lock is gone as well: then
// nobody can find this keeper any more, and the name may be another's.
func (k *keeper) mend() (found bool) {
	if _, err := os.Lstat(filepath.Join(k.dir, lockFile)); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	if _, err := os.Lstat(filepath.Join(k.dir, socketFile)); errors.Is(err, fs.ErrNotExist) {
		if l, err := socket.Listen(k.dir, socketFile); err == nil { // Else the next look tries again.
			k.server.Serve(l)
		}
	}
	return true
}

// end ends the session, if it has not ended, and writes down how it did.
func (k *keeper) end(why string) {
	k.noteAgents()
	err := k.sessions.Close()
	k.handler.Close()
	k.server.Close(session.ErrClosed)
	k.noted()
	k.journal.close()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	k.bury(why)
}

// bury leaves the record of a session that has ended.
func (k *keeper) bury(why string) {
	_ = os.Remove(filepath.Join(k.dir, socketFile)) // It may be gone.
	if k.record.From == "" {                        // Else it is that of the keeper which has the name.
		_ = os.Remove(filepath.Join(k.stateDir(), agentFile)) // As above.
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	last := k.last
	k.record.State = Ended
	k.record.End = &End{At: time.Now(), Why: why, Dir: last.Dir, Running: last.Running}
	k.record.notice()
	_ = private.Mkdir(k.dir) // If it was removed, this record is what tells the next caller. Else it is there.
	if err := k.record.writeLast(k.dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
