package terminal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/statedir"
)

// Registry is a directory of terminals, which any number of programs may share: each has
// those that it has started, and can read what is written down of the others. Its methods
// are safe for concurrent use. Close it.
type Registry struct {
	store
	opts  Options
	owner string // this program's name in records
	lock  *flock.Flock

	observers observers

	mu        sync.Mutex
	terminals map[string]*Terminal // of this program, that run, or whose output is in memory
	running   int
	ended     int // since the last look at what is to be forgotten
	guarded   bool
	closed    bool
	shut      chan struct{}  // closed when Close is through
	starts    sync.WaitGroup // that are under way; Close gives them up
	work      sync.WaitGroup // goroutines of terminals; they end with them
	life      context.Context
	giveUp    context.CancelCauseFunc // ends life
}

// Open opens the registry in dir, which it makes if it is not there. An empty dir means
// [DefaultDir]. Terminals of programs that are gone, and did not close them, are lost
// from then on: what ran in them was ended with those programs.
func Open(dir string, opts *Options) (*Registry, error) {
	r := &Registry{
		opts: opts.withDefaults(), owner: strings.ToLower(rand.Text()), terminals: make(map[string]*Terminal), shut: make(chan struct{}),
	}
	r.life, r.giveUp = context.WithCancelCause(context.Background())
	fail := func(err error, remedy string) (*Registry, error) {
		return nil, &Error{Op: "open " + cmp.Or(dir, "the default directory"), Err: err, Remedy: remedy}
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
	if r.opts.Dir, err = filepath.Abs(r.opts.Dir); err != nil {
		return fail(err, "")
	}
	if err := os.MkdirAll(r.dir, statedir.DirMode); err != nil {
		return fail(err, "name a directory that can be made and written to")
	}
	if err := statedir.Private(r.dir); err != nil {
		return fail(err, "name a directory of your own, with mode 0700")
	}
	r.lock = flock.New(r.path(r.owner, lockExt), flock.SetPermissions(statedir.FileMode))
	if ok, err := r.lock.TryLock(); err != nil || !ok {
		_ = r.lock.Close() // It was not locked.
		return fail(fmt.Errorf("locking %q: %w", r.lock.Path(), cmp.Or(err, errLocked)), "name a directory on a file system that has locks (flock(2))")
	}
	if _, err := r.List(); err != nil { // Which finds those that are lost.
		_ = r.unlock() // Nothing was done under it.
		return fail(err, "")
	}
	r.prune()
	return r, nil
}

var errLocked = errors.New("somebody else holds it")

// DefaultDir is where the terminals of a user are: $XDG_STATE_HOME/limpet/terminals, or
// ~/.local/state/limpet/terminals (XDG base directory specification). It fails where
// neither is set.
func DefaultDir() (string, error) { return statedir.Default("terminals") }

// Dir is the registry's directory.
func (r *Registry) Dir() string { return r.dir }

// Owner is the name of this program in the records of its terminals.
func (r *Registry) Owner() string { return r.owner }

// mark is in the environment of all that is started here.
func (r *Registry) mark() string { return environ.TerminalsVar + "=" + r.owner }

// refusal returns why nothing can be asked now, or nil.
func (r *Registry) refusal(op, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return &Error{Op: op, ID: id, Err: errClosed}
	}
	return nil
}

var (
	errClosed = fmt.Errorf("the registry is %w", ErrClosed)
	errViewer = fmt.Errorf("the viewer is %w", ErrClosed)
)

// Get returns the terminal with the ID. Of one that another program has, what is written
// down can be read.
func (r *Registry) Get(id string) (*Terminal, error) {
	const op = "get"
	if err := r.refusal(op, id); err != nil {
		return nil, err
	}
	if t := r.own(id); t != nil {
		return t, nil
	}
	info, err := r.recorded(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Op: op, ID: id, Err: ErrNotFound, Remedy: "List has those that there are"}
	}
	if err != nil {
		return nil, &Error{Op: op, ID: id, Err: err}
	}
	return r.past(info), nil
}

func (r *Registry) own(id string) *Terminal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.terminals[id]
}

// List returns what is known of the terminals, the oldest first. A record that cannot be
// read is left out, and said to the Logger.
func (r *Registry) List() ([]Info, error) {
	if err := r.refusal("list", ""); err != nil {
		return nil, err
	}
	ids, err := r.ids()
	if err != nil {
		return nil, &Error{Op: "list", Err: err}
	}
	list := make([]Info, 0, len(ids))
	for _, id := range ids {
		if t := r.own(id); t != nil {
			list = append(list, t.Info())
			continue
		}
		info, err := r.recorded(id)
		switch {
		case err == nil:
			list = append(list, info)
		case !errors.Is(err, fs.ErrNotExist): // It was forgotten meanwhile.
			r.opts.Logger.Warn("limpet: the record of a terminal cannot be read", "err", err)
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	return list, nil
}

// recorded reads the record of a terminal that is not in this program's memory. One whose
// program is gone is lost: that is written down.
func (r *Registry) recorded(id string) (Info, error) {
	info, err := r.info(id)
	if err != nil || info.State.Ended() {
		return info, err
	}
	if r.alive(info.Owner) {
		// It may have ended, and its program closed the registry, since it was read.
		if info, err = r.info(id); err == nil {
			info.Elsewhere = !info.State.Ended()
		}
		return info, err
	}
	if info, err = r.info(id); err != nil || info.State.Ended() {
		return info, err // As above.
	}
	from := info.State
	info.State, info.Why, info.Ended = Lost, "the program that had it is gone, and it was ended with it", time.Now()
	if err := r.writeJSON(id, recordExt, info); err != nil {
		return info, err
	}
	r.observers.tell(Change{ID: id, From: from, To: Lost, At: info.Ended, Info: info})
	return info, nil
}

// alive reports whether the program lives that has a name in records. A lock, unlike a
// pid, cannot be mistaken in another pid namespace or after a reuse.
func (r *Registry) alive(owner string) bool {
	if owner == r.owner {
		return true
	}
	if owner == "" || strings.Contains(owner, "/") {
		return false
	}
	path := r.path(owner, lockExt)
	if _, err := os.Lstat(path); err != nil {
		return false
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	defer lock.Close() // It gives the lock back.
	ok, err := lock.TryRLock()
	if ok {
		_ = os.Remove(path) // Nobody will lock it any more: names are not used twice.
	}
	return err == nil && !ok
}

// unlock gives the lock back, and takes its file away.
func (r *Registry) unlock() error {
	return errors.Join(os.Remove(r.lock.Path()), r.lock.Unlock())
}

// guard has the processes ended that carry the mark, if this program is killed.
func (r *Registry) guard() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.guarded {
		return nil
	}
	if err := guard.Watch("bash", r.mark(), ""); err != nil {
		return fmt.Errorf("starting the guard, which wants bash: %w", err)
	}
	r.guarded = true
	return nil
}

// Close closes all terminals of this program, ends what they have left, and lets go of the
// registry. It is safe to call twice, and beside everything else: waits end with
// ErrClosed, viewers with the end of the program.
func (r *Registry) Close() error {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		<-r.shut
		return nil
	}
	r.closed = true
	r.mu.Unlock()
	defer close(r.shut)
	r.giveUp(errClosed)
	r.starts.Wait()
	var (
		all  sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, t := range r.mine() {
		all.Go(func() {
			if err := t.Close(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	all.Wait()
	r.work.Wait()
	if r.guarded {
		proc.KillAll(r.mark()) // What left its terminal, and ran on after its end.
		guard.Forget(r.mark())
	}
	for _, t := range r.mine() {
		t.retire()
	}
	r.observers.close()
	return errors.Join(append(errs, r.unlock())...)
}

// mine are the terminals in this program's memory.
func (r *Registry) mine() []*Terminal {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*Terminal, 0, len(r.terminals))
	for _, t := range r.terminals {
		list = append(list, t)
	}
	return list
}
