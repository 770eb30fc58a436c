// Package rundir keeps the directory in which this program's sessions have
// theirs: it chooses a place, makes it private, marks it as in use for as long
// as the program lives, and sweeps what crashed programs left behind.
//
//	BASE/limpet-UID/PROGRAM/lock     held by flock(2) while the program lives
//	                       /SESSION  one per session
//
// Sessions that run as another user have theirs in BASE/limpet-UID-passable, whose
// directories let everybody through who knows a name.
package rundir

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/limpet-sh/limpet/internal/private"
)

// Program is the directory of this program below one base. It is shared by all
// sessions there and removed with the last of them.
type Program struct {
	Path string

	in   home
	lock *flock.Flock
	refs int
}

// home is where the directories of a user's programs are.
type home struct {
	base     string
	passable bool
}

var (
	mu       sync.Mutex
	programs = make(map[home]*Program)
	swept    = make(map[home]bool)
)

// Acquire returns the program's directory below base, and makes it if it is
// the first. If it is passable, other users can reach what is theirs in it, if
// they know its name. An empty base means [Default]. Every Acquire wants one
// Release.
func Acquire(base, name string, passable bool) (*Program, error) {
	base, err := filepath.Abs(cmp.Or(base, Default(passable)))
	if err != nil {
		return nil, err
	}
	// Two names of one place are one. And a sandbox may not have the symlinks.
	if real, err := filepath.EvalSymlinks(base); err == nil {
		base = real
	}
	in := home{base, passable}
	mu.Lock()
	defer mu.Unlock()
	if p := programs[in]; p != nil {
		if err := p.ensure(); err != nil {
			return nil, err
		}
		p.refs++
		return p, nil
	}
	parent, err := in.make()
	if err != nil {
		return nil, err
	}
	if !swept[in] {
		swept[in] = true
		Sweep(parent)
	}
	p, err := lockNew(parent, name)
	if err != nil {
		return nil, err
	}
	p.in = in
	programs[in] = p
	if err := os.Chmod(p.Path, in.mode()); err != nil { // Whatever the umask is.
		p.release()
		return nil, err
	}
	return p, nil
}

// mode is that of the directories above those of the sessions.
func (h home) mode() fs.FileMode {
	if h.passable {
		return 0o711
	}
	return 0o700
}

// lockNew makes a directory and locks it. Another program may sweep it in the
// instant between the two: then it is made again.
func lockNew(parent, name string) (*Program, error) {
	const tries = 5
	var err error
	for try := range tries {
		p := &Program{Path: filepath.Join(parent, name), refs: 1}
		if try > 0 {
			p.Path += "-" + strconv.Itoa(try)
		}
		if err = private.Mkdir(p.Path); err != nil {
			continue
		}
		var ok bool
		p.lock, ok, err = lock(p.Path)
		if ok && exists(p.lock.Path()) { // Else it is that of a directory which was swept since it was opened.
			return p, nil
		}
		_ = p.lock.Close()       // It was not locked, or nobody can find it.
		_ = os.RemoveAll(p.Path) // Nothing is in it.
		if err == nil {
			err = fmt.Errorf("rundir: somebody else has locked %q, or removed it", p.Path)
		}
	}
	return nil, err
}

// lock locks a program's directory, unless another program has done that. Close the lock in any case.
func lock(dir string) (*flock.Flock, bool, error) {
	path := filepath.Join(dir, "lock")
	l := flock.New(path)
	if err := private.Touch(path); err != nil {
		return l, false, err
	}
	ok, err := l.TryLock()
	return l, ok, err
}

// Ensure makes the directory, and its lock, anew if somebody deleted them.
func (p *Program) Ensure() error {
	mu.Lock()
	defer mu.Unlock()
	return p.ensure()
}

func (p *Program) ensure() error {
	if exists(p.lock.Path()) {
		return nil
	}
	if _, err := p.in.make(); err != nil {
		return err
	}
	if err := private.Mkdir(p.Path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := os.Chmod(p.Path, p.in.mode()); err != nil { // As above.
		return err
	}
	_ = p.lock.Close() // It locks a file that nobody finds any more.
	var ok bool
	var err error
	if p.lock, ok, err = lock(p.Path); err != nil || !ok {
		return fmt.Errorf("rundir: locking %q again: %w", p.lock.Path(), errors.Join(err, errLocked))
	}
	return nil
}

var errLocked = errors.New("it is locked, or cannot be")

// Release gives the directory back. The last one removes it.
func (p *Program) Release() {
	mu.Lock()
	defer mu.Unlock()
	p.release()
}

func (p *Program) release() {
	if p.refs--; p.refs > 0 {
		return
	}
	delete(programs, p.in)
	_ = Remove(p.Path) // Best effort: what stays is swept by the next program.
	_ = p.lock.Close() // The lock goes with the descriptor.
}

// make returns the directory for this user's programs. What others could have made
// or can write is refused.
func (h home) make() (string, error) {
	name := "limpet-" + strconv.Itoa(os.Getuid())
	if h.passable {
		name += "-passable"
	}
	dir := filepath.Join(h.base, name)
	if err := private.Mkdir(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !st.IsDir() || !ownedByUs(st) {
		return "", fmt.Errorf("rundir: %q is not a directory of ours; remove it, or use another runtime directory", dir)
	}
	if st.Mode().Perm() != h.mode() {
		if err := os.Chmod(dir, h.mode()); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// unlockedFor is how old a directory without a lock must be to be swept: its
// program may be just about to lock it.
const unlockedFor = time.Minute

// Sweep removes the directories of programs that are gone: those whose lock
// nobody holds. A lock, unlike a pid, cannot be mistaken in another pid
// namespace or after a reuse.
func Sweep(parent string) {
	entries, err := os.ReadDir(parent)
	if err != nil {
		return
	}
	for _, entry := range entries {
		dir := filepath.Join(parent, entry.Name())
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < unlockedFor && !exists(filepath.Join(dir, "lock")) {
			continue
		}
		lock, ok, err := lock(dir)
		if err != nil || !ok {
			_ = lock.Close() // Somebody lives there.
			continue
		}
		_ = Remove(dir)  // Best effort: the next program tries again.
		_ = lock.Close() // The lock goes with the descriptor.
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
