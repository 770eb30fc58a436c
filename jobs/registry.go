package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/statedir"
)

// What is in the directory of a registry, besides the jobs.
const (
	lockFile  = "lock"
	jobPrefix = "job-" // of a job's directory, which has its ID for a name
)

// Registry is a directory of jobs. Its methods are safe for concurrent use. Close it.
type Registry struct {
	dir  string
	opts Options
	lock *flock.Flock // nil if it is only read

	crashed bool // the last owner did not close it

	mu      sync.Mutex
	jobs    map[string]*job // of the owner: all of them
	closed  bool
	closing chan struct{}
	shut    chan struct{}  // closed when Close is through
	starts  sync.WaitGroup // that are under way; Close gives them up
	work    sync.WaitGroup // goroutines; they end at closing
	life    context.Context
	giveUp  context.CancelCauseFunc // ends life

	queue   *queue
	breaker breaker // mu guards it
	retire  *retirement
}

// Open opens the registry in dir, which it makes if it is not there. One program at
// a time owns a registry: for others the error is [ErrOwned], unless
// Options.ReadOnly. Programs with Options.Brief are waited for, one after another.
// An empty dir means [DefaultDir].
//
// The owner finds the jobs of the programs before it as they are, with their output,
// their exit codes and their watch patterns. Those that were to end with their program
// are ended, if they have not.
func Open(dir string, opts *Options) (*Registry, error) {
	r := &Registry{opts: opts.withDefaults(), jobs: make(map[string]*job), closing: make(chan struct{}), shut: make(chan struct{})}
	r.breaker.limits = r.opts.Watch
	r.life, r.giveUp = context.WithCancelCause(context.Background())
	fail := func(err error, remedy string) (*Registry, error) {
		return nil, &Error{Op: "open " + dir, Err: err, Remedy: remedy}
	}
	var err error
	if dir == "" {
		if dir, err = DefaultDir(); err != nil {
			return fail(err, "set HOME or XDG_STATE_HOME, or name a directory")
		}
	}
	if r.dir, err = filepath.Abs(dir); err != nil {
		return fail(err, "")
	}
	if r.opts.Dir != "" { // Else it is the program's at each start: it may be gone by now.
		if r.opts.Dir, err = filepath.Abs(r.opts.Dir); err != nil {
			return fail(err, "")
		}
	}
	if r.opts.ReadOnly {
		if st, err := os.Stat(r.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail(err, "")
		} else if err == nil && !st.IsDir() {
			return fail(errNoDir, "")
		}
		return r, nil
	}
	if err := private.MkdirAll(r.dir); err != nil {
		return fail(err, "name a directory that can be made and written to")
	}
	if err := statedir.Private(r.dir); err != nil {
		return fail(err, "name a directory of your own, with mode 0700")
	}
	if err := r.own(); err != nil {
		if errors.Is(err, ErrOwned) {
			return fail(err, "ask that one, or look at the jobs with Options.ReadOnly")
		}
		return fail(err, "name a directory of your own, with mode 0700")
	}
	r.queue, r.retire = newQueue(r), newRetirement(r)
	if err := r.recover(); err != nil {
		_ = r.lock.Unlock() // Nothing was done under it.
		return fail(err, "")
	}
	r.queue.start()
	r.retire.start()
	return r, nil
}

var errNoDir = errors.New("it is no directory")

// DefaultDir is where the jobs of a user are: $XDG_STATE_HOME/limpet/jobs, or
// ~/.local/state/limpet/jobs (XDG base directory specification).
// It fails where neither is set.
func DefaultDir() (string, error) { return statedir.Default("jobs") }

// How long Open waits for the program that holds the lock. It counts anew for each
// program that gets the lock in the meantime: a queue that moves is waited for to its end.
const (
	briefPatience   = 30 * time.Second       // with Options.Brief, which may stop a stubborn job
	unnamedPatience = 2 * time.Second        // that has not written down yet which one it is
	ownerPatience   = 200 * time.Millisecond // another one: of a killed program, a child that was about to exec has the lock for a moment
)

// briefOwner follows the pid in the lock of an owner with Options.Brief.
const briefOwner = "brief"

// own takes the lock, which is free as soon as its program is gone, and writes down which
// program has it now. It waits while the lock is held by programs that soon release it.
func (r *Registry) own() error {
	ctx, free := r.opts.Interrupts.Context(context.Background())
	defer free()
	path := filepath.Join(r.dir, lockFile)
	if err := private.Touch(path); err != nil {
		return err
	}
	r.lock = flock.New(path)
	pause := 10 * time.Millisecond // A lock raises no event when it is free.
	const longestPause = 100 * time.Millisecond
	owner, since := "", time.Now()
	for {
		ok, err := r.lock.TryLock()
		if err != nil {
			return err
		}
		if ok {
			break
		}
		if now := ownerIn(path); now != owner {
			owner, since = now, time.Now()
		}
		pid, patience := parseOwner(owner)
		if time.Since(since) > patience {
			return &OwnedError{PID: pid}
		}
		select {
		case <-time.After(pause):
			pause = min(pause*3/2, longestPause) // Many that wait shall not take the processors from the owner.
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	r.crashed = ownerIn(path) != "" // Else the last owner has removed its name.
	text := strconv.Itoa(os.Getpid())
	if r.opts.Brief {
		text += " " + briefOwner
	}
	_ = private.WriteFile(path, []byte(text+"\n")) // Best effort: the lock itself is what counts.
	return nil
}

// ownerIn returns what the lock says about its owner; "" if nothing.
func ownerIn(path string) string {
	b, _ := os.ReadFile(path) // Then nothing is known.
	return strings.TrimSpace(string(b))
}

// parseOwner returns the pid of the owner, 0 if it is not known, and how long the owner is
// waited for.
func parseOwner(text string) (pid int, patience time.Duration) {
	number, kind, _ := strings.Cut(text, " ")
	pid, _ = strconv.Atoi(number) // Then it is not known.
	switch {
	case text == "":
		return 0, unnamedPatience
	case kind == briefOwner:
		return pid, briefPatience
	}
	return pid, ownerPatience
}

// recover finds the jobs of earlier programs. It can be done again after a crash in the
// middle of it: nothing is changed that is not so.
func (r *Registry) recover() error {
	ids, err := r.listed()
	if err != nil {
		return err
	}
	for _, id := range ids {
		dir := filepath.Join(r.dir, id)
		spec, err := readSpec(dir)
		if errors.Is(err, fs.ErrNotExist) {
			_ = os.RemoveAll(dir) // It was being made: nothing was started yet.
			continue
		}
		if err != nil {
			r.opts.Logger.Warn("limpet: a job cannot be read, and is left alone", "dir", dir, "err", err)
			continue
		}
		j := r.newJob(spec)
		close(j.ready)
		j.readMemo()
		r.jobs[id] = j
		if f, err := j.read(); err == nil { // An error is reported by mind, or when the job is asked for.
			if f.exit == nil && r.crashed {
				r.note(j, Event{Kind: Recovered})
			}
			r.settle(j, &f, false) // Its age counts from now on, if nobody has seen it before.
			if f.orphaned() {
				r.work.Go(func() { r.end(r.life, j, ByProgram) })
			}
		}
		r.look(j)
	}
	return nil
}

// listed returns the names of the jobs' directories.
func (r *Registry) listed() ([]string, error) {
	entries, err := os.ReadDir(r.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []string
	for _, entry := range entries {
		if entry.IsDir() && validID(entry.Name()) {
			ids = append(ids, entry.Name())
		}
	}
	return ids, err
}

// Dir is the registry's directory.
func (r *Registry) Dir() string { return r.dir }

var errClosed = fmt.Errorf("the registry is %w", ErrClosed)

// refusal returns why nothing can be asked now, or nil.
func (r *Registry) refusal() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errClosed
	}
	return nil
}

// mine returns why this program may not change anything, or nil.
func (r *Registry) mine(op, id string) error {
	if err := r.refusal(); err != nil {
		return &Error{Op: op, ID: id, Err: err}
	}
	if r.opts.ReadOnly {
		return &Error{Op: op, ID: id, Err: fmt.Errorf("%w: the registry is only read", ErrNotPossible), Remedy: "have its owner do it, or open it without Options.ReadOnly"}
	}
	return nil
}

// find returns the job with the ID.
func (r *Registry) find(op, id string) (*job, error) {
	if err := r.refusal(); err != nil {
		return nil, &Error{Op: op, ID: id, Err: err}
	}
	if !r.opts.ReadOnly {
		r.mu.Lock()
		j := r.jobs[id]
		r.mu.Unlock()
		if j != nil {
			<-j.ready // Close ends a start that hangs.
			return j, nil
		}
	} else if validID(id) {
		spec, err := readSpec(filepath.Join(r.dir, id))
		if err == nil {
			return r.reading(spec), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, &Error{Op: op, ID: id, Err: err}
		}
	}
	return nil, &Error{Op: op, ID: id, Err: ErrNotFound, Remedy: "List has those that there are"}
}

// reading is a job of another program's. It is kept for what the next Poll starts from.
func (r *Registry) reading(spec stored) *job {
	r.mu.Lock()
	defer r.mu.Unlock()
	if j := r.jobs[spec.ID]; j != nil {
		return j
	}
	j := r.newJob(spec)
	close(j.ready)
	r.jobs[spec.ID] = j
	return j
}

// all returns the jobs, the oldest first.
func (r *Registry) all() []*job {
	if r.opts.ReadOnly {
		r.rescan()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*job, 0, len(r.jobs))
	for _, j := range r.jobs {
		list = append(list, j)
	}
	slices.SortFunc(list, func(a, b *job) int {
		return cmp.Or(a.spec.Created.Compare(b.spec.Created), cmp.Compare(a.spec.ID, b.spec.ID))
	})
	return list
}

// rescan finds what the owner has started and forgotten since.
func (r *Registry) rescan() {
	ids, _ := r.listed() // What cannot be read is not there.
	r.mu.Lock()
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	for id := range r.jobs {
		if !known[id] {
			delete(r.jobs, id)
		}
	}
	r.mu.Unlock()
	for _, id := range ids {
		if spec, err := readSpec(filepath.Join(r.dir, id)); err == nil {
			r.reading(spec)
		}
	}
}

// Close ends the jobs that live with the program, waits for them, and lets go of the
// registry. Detached jobs run on. It is safe to call twice, and beside everything
// else: waits end with ErrClosed.
func (r *Registry) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.shut
		return nil
	}
	r.closed = true
	defer close(r.shut)
	r.mu.Unlock()
	r.giveUp(errClosed)
	if r.opts.ReadOnly {
		close(r.closing)
		return nil
	}
	r.starts.Wait()
	var stops sync.WaitGroup
	for _, j := range r.all() {
		if j.spec.Lifetime == WithProgram {
			stops.Go(func() { r.end(context.Background(), j, ByProgram) })
		}
	}
	stops.Wait()
	close(r.closing)
	r.queue.close()
	r.retire.close()
	r.work.Wait()
	for _, j := range r.all() {
		j.release()
		j.reap()
	}
	_ = os.Truncate(filepath.Join(r.dir, lockFile), 0) // It is nobody's.
	return r.lock.Unlock()
}
