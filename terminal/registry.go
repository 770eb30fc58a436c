package terminal

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/gofrs/flock"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/private"
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
	losing    sync.Mutex // held by the one that finds a terminal lost

	mu        sync.Mutex
	terminals map[string]*Terminal // of this program, that run, or whose output is in memory
	running   int
	ended     []*Terminal // in memory, the one that ended first before the others
	retired   int         // since the last look at what is to be forgotten
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
	if r.opts.Dir != "" { // Else it is the program's at each start: it may be gone by now.
		if r.opts.Dir, err = filepath.Abs(r.opts.Dir); err != nil {
			return fail(err, "")
		}
	}
	if err := private.MkdirAll(r.dir); err != nil {
		return fail(err, "name a directory that can be made and written to")
	}
	if err := statedir.Private(r.dir); err != nil {
		return fail(err, "name a directory of your own, with mode 0700")
	}
	if err := environ.Check(r.opts.Env); err != nil {
		return fail(err, "")
	}
	// Who may only look needs none; a Start tries again.
	if err := r.takeLock(); err != nil && !errors.Is(err, syscall.EROFS) {
		return fail(err, "name a directory that can be written to, on a file system that has locks (flock(2))")
	}
	if _, err := r.List(); err != nil { // Which finds those that are lost.
		_ = r.unlock() // Nothing was done under it.
		return fail(err, "")
	}
	r.prune()
	return r, nil
}

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

// Close closes all terminals of this program, ends what they have left, and lets go of the
// registry. It is safe to call twice, and beside everything else: waits and viewers end as
// their programs do. It waits for observers to have been told, and so for one that blocks.
// The error is ErrRunning if a program cannot be ended: see [Terminal.Close].
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
	if r.isGuarded() {
		proc.KillAll(r.mark()) // What left its terminal, and ran on after its end.
		guard.Forget(r.mark())
	}
	errs = slices.DeleteFunc(errs, func(err error) bool {
		e, ok := errors.AsType[*stillRuns](err)
		return ok && !e.t.lives() // It only took a moment longer.
	})
	if len(errs) == 0 { // Else what looks after a program that cannot be ended goes on until it has.
		r.work.Wait()
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
