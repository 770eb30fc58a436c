// Package rundir keeps the directory in which this program's sessions have
// theirs: it chooses a place, makes it private, marks it as in use for as long
// as the program lives, and sweeps what crashed programs left behind.
//
//	BASE/limpet-UID/PROGRAM/lock     held by flock(2) while the program lives
//	                       /SESSION  one per session
package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Program is the directory of this program below one base. It is shared by all
// sessions there and removed with the last of them.
type Program struct {
	Path string

	base string
	lock *flock.Flock
	refs int
}

var (
	mu       sync.Mutex
	programs = make(map[string]*Program)
	swept    = make(map[string]bool)
)

// Acquire returns the program's directory below base, and makes it if it is
// the first. An empty base means [Default]. Every Acquire wants one Release.
func Acquire(base, name string) (*Program, error) {
	if base == "" {
		base = Default()
	}
	base, err := filepath.Abs(base)
	if err != nil {
		return nil, err
	}
	// Two names of one place are one. And a sandbox may not have the symlinks.
	if real, err := filepath.EvalSymlinks(base); err == nil {
		base = real
	}
	mu.Lock()
	defer mu.Unlock()
	if p := programs[base]; p != nil {
		if err := p.ensure(); err != nil {
			return nil, err
		}
		p.refs++
		return p, nil
	}
	parent, err := private(base)
	if err != nil {
		return nil, err
	}
	if !swept[base] {
		swept[base] = true
		Sweep(parent)
	}
	p, err := lockNew(parent, name)
	if err != nil {
		return nil, err
	}
	p.base = base
	programs[base] = p
	return p, nil
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
		if err = os.Mkdir(p.Path, 0o700); err != nil {
			continue
		}
		p.lock = flock.New(filepath.Join(p.Path, "lock"), flock.SetPermissions(0o600))
		var ok bool
		if ok, err = p.lock.TryLock(); ok {
			return p, nil
		}
		_ = p.lock.Close()       // It was not locked.
		_ = os.RemoveAll(p.Path) // Nothing is in it.
		if err == nil {
			err = fmt.Errorf("rundir: somebody else has locked %q", p.Path)
		}
	}
	return nil, err
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
	if _, err := private(p.base); err != nil {
		return err
	}
	if err := os.Mkdir(p.Path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	_ = p.lock.Close() // It locks a file that nobody finds any more.
	p.lock = flock.New(filepath.Join(p.Path, "lock"), flock.SetPermissions(0o600))
	if ok, err := p.lock.TryLock(); err != nil || !ok {
		return fmt.Errorf("rundir: locking %q again: %w", p.lock.Path(), errors.Join(err, errLocked))
	}
	return nil
}

var errLocked = errors.New("it is locked, or cannot be")

// Release gives the directory back. The last one removes it.
func (p *Program) Release() {
	mu.Lock()
	defer mu.Unlock()
	if p.refs--; p.refs > 0 {
		return
	}
	delete(programs, p.base)
	_ = Remove(p.Path) // Best effort: what stays is swept by the next program.
	_ = p.lock.Close() // The lock goes with the descriptor.
}

// private returns the directory for this user's programs below base. What
// others could have made or can write is refused.
func private(base string) (string, error) {
	dir := filepath.Join(base, "limpet-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	st, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !st.IsDir() || !ownedByUs(st) {
		return "", fmt.Errorf("rundir: %q is not a directory of ours; remove it, or use another runtime directory", dir)
	}
	if st.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
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
		lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
		if ok, err := lock.TryLock(); err != nil || !ok {
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
