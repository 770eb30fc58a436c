package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// An upgrade is done by the keeper that is to be replaced, the old one:
//
//	client      old                         new
//	  | upgrade  |
//	  |--------->| waits until no command runs, and keeps those that come from beginning
//	  |          | starts the new one, with the state, and a pipe as its claim
//	  |          |------------------------->| starts its shell, answers
//	  |          | compares
//	  |          | writes Next = new into its own record: this is the moment
//	  |          | closes the claim         |
//	  |          |------------------------->| writes Settled into its own record
//	  |<---------| answers; what comes is    |
//	  |          | told that it has moved   |
//	  |          | ends its shell, and itself
//
// Before that moment the name is that of the old one, and afterwards that of the new one, whoever is
// killed. The claim also closes when the old one is killed: a new one that finds its claim closed, and its
// ID not in the record of the old one, ends. Both decide while they hold the names.

// Upgrade says how a session is upgraded. The zero value is the careful way.
type Upgrade struct {
	NoWait bool // the error is shell.ErrBusy if a command runs
	Force  bool // also if something is lost; else the error is wire.ErrWouldLose then
}

// busyPatience is how long an upgrade that is not to wait does so: a command may be about to be through.
const busyPatience = 10 * time.Millisecond

// Upgrade has the session kept by a new keeper, of the executable of [Registry.Execute], and returns what was
// lost. It waits for the command that runs; ctx bounds that, and the start of the new one. After an error the
// session is as it was, unless its keeper was killed. The session leads to the new keeper then.
func (r *Registry) Upgrade(ctx context.Context, k *Kept, how Upgrade) (lost []string, err error) {
	to := wire.Upgrade{ID: newID(), Version: r.Version, Force: how.Force}
	if how.NoWait {
		to.TurnTimeout = busyPatience
	}
	cmd := r.Execute(filepath.Join(r.dir, to.ID))
	to.Args = cmd.Args
	if to.Path, to.Device, to.Inode, err = executable(cmd.Path); err != nil {
		return nil, &session.Error{Op: "upgrade", Session: k.Name(), Err: err}
	}
	did, err := k.Session.Upgrade(ctx, to)
	if err == nil || errors.Is(err, wire.ErrGone) || errors.Is(err, wire.ErrMoved) {
		// A keeper may be killed when it has done it, and another client may have been faster.
		if k.follow(ctx) {
			if said, failed := k.client.Hello(ctx); failed == nil && said.Version == to.Version {
				return did.Lost, nil
			}
		}
	}
	return did.Lost, err
}

// UpgradesTo implements [Place].
func (r *Registry) UpgradesTo() string { return r.Version }

// executable returns a path by which another process finds the file that path is for this one, and what tells
// it from others.
func executable(path string) (found string, device, inode uint64, err error) {
	st, err := os.Stat(path)
	if err != nil {
		return "", 0, 0, err
	}
	if strings.HasPrefix(path, "/proc/self/") {
		found = strings.Replace(path, "/self/", fmt.Sprintf("/%d/", os.Getpid()), 1) // While this one lives.
		if own, err := os.Executable(); err == nil {
			if other, err := os.Stat(own); err == nil && os.SameFile(st, other) { // It was not replaced meanwhile.
				found = own
			}
		}
	} else if found, err = filepath.Abs(path); err != nil {
		return "", 0, 0, err
	}
	device, inode = identity(st)
	return found, device, inode, nil
}

// statePatience is how long it may take to ask a shell for its state, in which no command runs.
const statePatience = 2 * time.Second

// lingers is how long an old keeper waits for those who still read what a command has printed.
const lingers = time.Minute

// Upgrade implements [wire.Upgrader].
func (o own) Upgrade(ctx context.Context, to wire.Upgrade) (did wire.Upgraded, err error) {
	fail := func(err error, remedy string) (wire.Upgraded, error) {
		return wire.Upgraded{}, &session.Error{Op: "upgrade", Session: o.Name(), Err: err, Remedy: remedy}
	}
	if err := checkExecutable(to); err != nil {
		return fail(err, "")
	}
	resume, err := o.k.handler.Pause(ctx, to.TurnTimeout)
	if err != nil {
		return fail(err, "")
	}
	moved := false
	defer func() {
		resume(moved)
		if moved {
			close(o.k.moved) // Behind: from here on the session ends, and nobody may be told so.
		}
	}()
	turn, cancel := ctx, func() {}
	if to.TurnTimeout > 0 { // An agent's command does not come through the gate.
		turn, cancel = context.WithTimeoutCause(ctx, to.TurnTimeout+statePatience, shell.ErrBusy)
	}
	spec, lost, err := o.carry(turn)
	cancel()
	if err != nil {
		return fail(err, "")
	}
	if len(lost) > 0 && !to.Force {
		return fail(fmt.Errorf("%w %s", wire.ErrWouldLose, strings.Join(lost, ", ")), "--force does it all the same")
	}
	if err := o.k.replace(ctx, to, spec); err != nil {
		return fail(err, "")
	}
	moved = true
	return wire.Upgraded{Lost: lost}, nil
}

// checkExecutable makes sure that the executable is what the client means: it may be in another container.
func checkExecutable(to wire.Upgrade) error {
	st, err := os.Stat(to.Path)
	if err != nil {
		return fmt.Errorf("finding the new limpet: %w", err)
	}
	if device, inode := identity(st); device != to.Device || inode != to.Inode {
		return fmt.Errorf("%q is another file for the keeper of the session: is that in another container?", to.Path)
	}
	if filepath.Base(to.ID) != to.ID || len(to.ID) != len(newID()) {
		return fmt.Errorf("%q is not the ID of a keeper", to.ID)
	}
	return nil
}

func identity(st os.FileInfo) (device, inode uint64) {
	if of, ok := st.Sys().(*syscall.Stat_t); ok {
		return uint64(of.Dev), of.Ino
	}
	return 0, 0
}

// carry returns what the new keeper begins with, and what it will not have.
func (o own) carry(ctx context.Context) (spec Spec, lost []string, err error) {
	state, err := o.State(ctx)
	if err != nil {
		return spec, nil, err
	}
	running, err := o.Background(ctx)
	if err != nil {
		return spec, nil, err
	}
	info, err := o.Info(ctx)
	if err != nil {
		return spec, nil, err
	}
	spec = o.k.record.Spec
	spec.Env, spec.State, spec.Checkpoints = os.Environ(), &state, o.Checkpoints()
	if info.Jobs, err = o.bound(); err != nil {
		return spec, nil, err
	}
	lost = lostWith(running, info, state.Unsaved())
	for _, other := range o.k.sessions.List() {
		if other.Name != o.Name() {
			lost = append(lost, "session "+other.Name+" of an agent")
		}
	}
	if o.k.handler.Attached(o.Name()) {
		lost = append(lost, "the connection of an agent")
	}
	return spec, lost, nil
}

// bound returns how many jobs run that end with this keeper: those that were handed over by a command. Others are
// the next one's.
func (o own) bound() (n int, err error) {
	if _, err := os.Stat(o.k.jobsDir()); err != nil {
		return 0, nil // There are none.
	}
	all, err := o.Jobs()
	if err != nil {
		return 0, err
	}
	list, err := all.List(jobs.Filter{})
	for _, job := range list {
		if job.Lifetime != jobs.Detached && (!job.State.Finished() || job.Leftover) {
			n++
		}
	}
	return n, err
}

// lostWith says what is lost when a session gets another shell and another keeper.
func lostWith(running []command.Process, info session.Info, unsaved []string) (lost []string) {
	const mostShown, mostOf = 3, 40
	for i, p := range running {
		if i == mostShown {
			lost = append(lost, fmt.Sprintf("%d more processes", len(running)-i))
			break
		}
		lost = append(lost, fmt.Sprintf("process %d (%s)", p.PID, runes.Brief(p.Command, mostOf)))
	}
	if info.Jobs > 0 {
		lost = append(lost, fmt.Sprintf("jobs that were commands: %d", info.Jobs))
	}
	if info.Terminals > 0 {
		lost = append(lost, fmt.Sprintf("terminals that run: %d", info.Terminals))
	}
	return append(lost, unsaved...)
}

// replace starts a new keeper, and hands the name to it. After an error nothing has changed.
func (k *keeper) replace(ctx context.Context, to wire.Upgrade, spec Spec) error {
	claimed, claim, err := os.Pipe()
	if err != nil {
		return err
	}
	defer claim.Close() // It has nothing to say: that it is closed is what the new one waits for.
	next, err := k.startNext(ctx, to, spec, claimed)
	_ = claimed.Close() // The new one has its own.
	if err != nil {
		return err
	}
	defer next.Disconnect()
	err = next.verify(ctx, to.Version, k.current().Dir())
	if err == nil {
		err = k.handOver(ctx, next)
	}
	if err != nil {
		_ = claim.Close() // Before: then it ends in good order, if it is not slow.
		k.registry.discard(next)
	}
	return err
}

func (k *keeper) startNext(ctx context.Context, to wire.Upgrade, spec Spec, claimed *os.File) (*Kept, error) {
	unlock, err := k.registry.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r := &Registry{dir: k.registry.dir, Execute: func(string) *exec.Cmd {
		cmd := exec.Command(to.Path)
		cmd.Args = to.Args
		return cmd
	}}
	record, err := r.startAs(Record{
		ID: to.ID, Name: k.record.Name, Created: k.record.Created, Spec: spec, From: k.record.ID, Session: k.record.SessionID(),
	}, claimed, []string{k.dir}) // No command runs, so that its journal says all.
	if err != nil {
		return nil, err
	}
	next := k.registry.kept(record)
	next.client.Follow = nil // It is this one that is meant.
	return next, nil
}

// verify makes sure that a new keeper answers, is of the version, and has a shell in the directory.
func (k *Kept) verify(ctx context.Context, version, dir string) error {
	if err := k.greet(ctx); err != nil {
		return cmp.Or(k.failed(ctx, err), fmt.Errorf("the new keeper: %w", err))
	}
	limited, cancel := context.WithTimeoutCause(ctx, helloPatience, ErrMute)
	defer cancel()
	said, err := k.client.Hello(limited)
	if err != nil {
		return fmt.Errorf("the new keeper: %w", err)
	}
	info, err := k.Info(limited)
	switch {
	case err != nil:
		return fmt.Errorf("the new keeper: %w", err)
	case said.Version != version:
		return fmt.Errorf("the new keeper is of limpet %s, and not of %s", said.Version, version)
	case info.State != session.Idle:
		return fmt.Errorf("the new shell is %q, and not idle", info.State)
	case info.Dir != dir:
		return fmt.Errorf("the new shell is in %q, and not in %q: is that directory gone?", info.Dir, dir)
	}
	return nil
}

// handOver hands the name to a new keeper. After an error it has it not.
func (k *keeper) handOver(ctx context.Context, next *Kept) error {
	unlock, err := k.registry.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closing || k.current().Closing() {
		return session.ErrClosed
	}
	if !alive(next.dir()) {
		return errors.New("the new keeper has ended")
	}
	k.record.Next = next.Record.ID
	if err := k.record.write(k.dir); err != nil {
		k.record.Next = ""
		return err
	}
	return nil
}

// close marks the session as one that is about to end, which no keeper takes over any more. It reports
// false if one has.
func (k *keeper) close() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.record.Next != "" {
		return false
	}
	k.closing = true
	return true
}

// settle waits until the claim is decided, and ends this keeper if the name has not become its own.
func (k *keeper) settle(claim *os.File) {
	_, _ = io.Copy(io.Discard, claim) // It ends, for whatever reason: nothing is written there.
	_ = claim.Close()                 // Read only.
	unlock, err := k.registry.lock(context.Background())
	if err != nil {
		close(k.dropped) // The directory of all is gone.
		return
	}
	defer unlock()
	list, err := k.registry.entries()
	if err != nil || !slices.ContainsFunc(list, func(e entry) bool { return e.record.ID == k.record.ID && !e.other }) {
		close(k.dropped)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.record.State == Ended { // It has ended meanwhile.
		return
	}
	k.record.Settled = true
	if err := k.record.write(k.dir); err != nil {
		fmt.Fprintln(os.Stderr, err) // The old one stays, and says whose the name is.
	}
	go k.takeJobs() // It ends soon, or with the program.
}

// takeJobs opens the jobs of the keeper before this one, when that has let go of them, so that they are counted, and ended
// with the session.
func (k *keeper) takeJobs() {
	const pause = 20 * time.Millisecond
	if _, err := os.Stat(k.jobsDir()); err != nil {
		return // There are none.
	}
	for began := time.Now(); time.Since(began) < lingers; time.Sleep(pause) {
		if _, err := k.sessions.Jobs(); !errors.Is(err, jobs.ErrOwned) {
			return
		}
	}
}

// settled waits until the next keeper needs this one's record no more, but not for long.
func (k *keeper) settled(ctx context.Context) bool {
	const pause = 5 * time.Millisecond
	for dir := filepath.Join(k.registry.dir, k.record.Next); ; time.Sleep(pause) {
		next, err := readRecord(dir)
		if errors.Is(err, fs.ErrNotExist) || err == nil && next.Settled {
			return true
		}
		if ctx.Err() != nil || !alive(dir) {
			return false
		}
	}
}

// leave ends a keeper that does not have its name, and removes its directory.
func (k *keeper) leave() {
	k.handler.EndAgents()
	_ = k.sessions.Leave() // Nobody is there to be told. The next keeper has the jobs.
	ctx, cancel := context.WithTimeout(context.Background(), lingers)
	defer cancel()
	_ = k.server.Drain(ctx) // Who reads no more by then has had their time.
	k.handler.Close()
	k.server.Close(wire.ErrMoved)
	k.noted()
	k.journal.close()
	if k.record.Next == "" || k.settled(ctx) {
		removeLeaving(k.dir)
	}
}
