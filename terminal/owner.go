package terminal

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/private"
)

// takeLock says that this program lives, for as long as it does.
func (r *Registry) takeLock() error {
	path := r.path(r.owner, lockExt)
	if err := private.Touch(path); err != nil {
		return err
	}
	lock := flock.New(path)
	if ok, err := lock.TryLock(); err != nil || !ok {
		_ = lock.Close() // It was not locked.
		return fmt.Errorf("locking %q: %w", lock.Path(), cmp.Or(err, errLocked))
	}
	r.lock = lock
	return nil
}

var errLocked = errors.New("somebody else holds it")

// unlock gives the lock back, and takes its file away.
func (r *Registry) unlock() error {
	if r.lock == nil {
		return nil
	}
	err := os.Remove(r.lock.Path())
	if errors.Is(err, fs.ErrNotExist) {
		err = nil // Somebody has tidied up.
	}
	return errors.Join(err, r.lock.Unlock())
}

// ensure makes the directory and the lock anew if somebody has removed them: others would
// take this program for one that is gone. The caller holds mu.
func (r *Registry) ensure() error {
	if r.lock == nil {
		return r.takeLock()
	}
	if _, err := os.Lstat(r.lock.Path()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := private.MkdirAll(r.dir); err != nil {
		return err
	}
	_ = r.lock.Close() // It locks a file that nobody finds any more.
	return r.takeLock()
}

// guard has the processes ended that carry the mark, if this program is killed. A guard that
// was killed itself is replaced.
func (r *Registry) guard() error {
	if err := guard.Watch("bash", r.mark(), ""); err != nil {
		return fmt.Errorf("starting the guard, which wants bash: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.guarded = true
	return nil
}

func (r *Registry) isGuarded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.guarded
}

// alive reports whether the program lives that has a name in records. A lock, unlike a
// pid, cannot be mistaken in another pid namespace or after a reuse. On an error there is
// no telling.
func (r *Registry) alive(owner string) (bool, error) {
	if owner == r.owner {
		return true, nil
	}
	if owner == "" || strings.Contains(owner, "/") {
		return false, nil
	}
	path := r.path(owner, lockExt)
	switch st, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !st.Mode().IsRegular():
		return false, nil // No lock of ours.
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
	defer lock.Close() // It gives the lock back.
	ok, err := lock.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case ok:
		_ = os.Remove(path) // Nobody will lock it any more: names are not used twice.
	}
	return !ok, nil
}

// recorded reads the record of a terminal that is not in this program's memory. One whose
// program is gone is lost: that is written down, and told once.
func (r *Registry) recorded(id string) (Info, error) {
	info, err := r.info(id)
	if err != nil || info.State.Ended() {
		return info, err
	}
	r.losing.Lock()
	defer r.losing.Unlock()
	alive, unknown := r.alive(info.Owner)
	// It may have ended, and its program closed the registry, since it was read.
	if info, err = r.info(id); err != nil || info.State.Ended() {
		return info, err
	}
	if unknown != nil {
		r.opts.Logger.Warn("limpet: there is no telling whether the program lives that has a terminal", "id", id, "err", unknown)
	}
	if alive || unknown != nil {
		info.Elsewhere = true
		return info, nil
	}
	from := info.State
	info.State, info.Why, info.Ended = Lost, "the program that had it is gone, and it was ended with it", time.Now()
	if err := r.writeJSON(id, recordExt, info); err != nil {
		r.opts.Logger.Warn("limpet: that a terminal is lost cannot be written down", "id", id, "err", err)
	}
	r.observers.tell(Change{ID: id, From: from, To: Lost, At: info.Ended, Info: info})
	return info, nil
}
