package sandbox

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// watcher is the tripwire of one sandbox.
type watcher struct {
	tripwire
	quarantine bool
	report     func(Violation) // may be nil

	mu    sync.Mutex
	known map[sighting]bool // what was reported and is still there, and the symlinks of the start
	links []string          // the submodules of the start
	read  unix.Stat_t       // the index when it was last read
	added []string          // the submodules that it had then, besides
}

// sighting is something that is there. The target is that of one of git's
// symlinks: one that leads elsewhere is another one. Of one with a protected name, it is
// also what it leads to in the end. Crowded is a directory with
// too many files to look at: something may hide among them.
type sighting struct {
	spot
	target  string
	crowded bool
}

func newWatcher(p Policy, report func(Violation)) *watcher {
	w := &watcher{tripwire: p.wire, quarantine: p.FS.Quarantine, report: report, known: make(map[sighting]bool)}
	for _, dir := range w.gitDirs {
		for _, link := range symlinks(dir) {
			w.known[link] = true
		}
	}
	for _, link := range w.namedLinks() {
		w.known[link] = true
	}
	if w.index.dir != "" {
		w.links, _, _ = w.index.gitlinks() // They were read just now. If they cannot be, each one is one too many.
	}
	return w
}

// look gives what was made since the last look, and moves it away if that is
// asked for.
func (w *watcher) look() []Violation {
	w.mu.Lock()
	var found []Violation
	known := make(map[sighting]bool)
	for _, s := range w.sightings() {
		if w.known[s] {
			known[s] = true
			continue
		}
		v := Violation{Path: s.path()}
		if s.crowded {
			v.Err = errCrowded
		} else if w.quarantine {
			v.Moved, v.Err = moveAway(s.spot)
			if v.Err == nil {
				s.rel = strings.TrimPrefix(v.Moved, s.top+"/") // It may be a symlink there too.
			}
		}
		known[s] = true
		found = append(found, v)
	}
	w.known = known
	w.mu.Unlock()
	if w.report != nil {
		for _, v := range found {
			w.report(v)
		}
	}
	return found
}

// sightings lists what is there now. Where a symlink is on the way to a path, it
// is the symlink.
func (w *watcher) sightings() []sighting {
	var list []sighting
	for _, s := range findAll(w.missing) {
		list = append(list, sighting{spot: s})
	}
	list = append(list, w.namedLinks()...)
	for _, dir := range w.gitDirs {
		list = append(list, symlinks(dir)...)
	}
	if w.bare != "" && isGitDir(w.bare) {
		list = append(list, sighting{spot: spot{w.bare, "HEAD"}})
	}
	if w.index.dir != "" {
		list = append(list, w.submodules()...)
	}
	return list
}

// namedLinks lists what is now where a symlink with a protected name was at the start. It
// is another sighting if it leads elsewhere, be it by another symlink, or is no symlink.
func (w *watcher) namedLinks() (list []sighting) {
	for _, s := range findAll(w.named) {
		target, _ := os.Readlink(s.path())        // Empty: it is none.
		end, _ := filepath.EvalSymlinks(s.path()) // Empty: it leads nowhere.
		list = append(list, sighting{spot: s, target: target + "\x00" + end})
	}
	return list
}

// submodules lists repositories of which the index says that they are submodules,
// and did not at the start: git would run itself in them, with what their
// configuration says. If it cannot be read, it is the index.
func (w *watcher) submodules() (list []sighting) {
	var now unix.Stat_t
	if err := unix.Lstat(filepath.Join(w.index.dir, "index"), &now); err != nil {
		return nil
	}
	// Nobody can set the time of a change, as that of the content can be.
	if now.Dev != w.read.Dev || now.Ino != w.read.Ino || now.Ctim != w.read.Ctim {
		links, split, err := w.index.gitlinks()
		if err != nil {
			return []sighting{{spot: spot{w.index.dir, "index"}}}
		}
		w.read, w.added = now, slices.DeleteFunc(links, func(link string) bool { return slices.Contains(w.links, link) })
		// Another change may have the same time, and may be in another file.
		if split || time.Since(time.Unix(now.Ctim.Unix())) < time.Second {
			w.read = unix.Stat_t{}
		}
	}
	for _, link := range w.added {
		if !filepath.IsLocal(link) {
			continue // Git refuses it too.
		}
		s := spot{w.index.top, filepath.Join(link, ".git")}
		if rel, ok := find(s); ok {
			list = append(list, sighting{spot: spot{s.top, rel}})
		}
	}
	return list
}

// parent opens the directory that holds a path, part by part. It follows no
// symlink: if it meets one, or something else that is no directory, it gives how
// far it came. The caller closes the directory.
func (s spot) parent() (dir int, rel string, err error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	dir, err = unix.Open(s.top, flags, 0)
	if err != nil {
		return -1, "", err
	}
	parts := strings.Split(s.rel, "/")
	for i, name := range parts[:len(parts)-1] {
		next, err := unix.Openat(dir, name, flags, 0)
		if err == unix.ENOTDIR || err == unix.ELOOP {
			return dir, strings.Join(parts[:i+1], "/"), nil
		}
		_ = unix.Close(dir) // Nothing was done with it.
		if err != nil {
			return -1, "", err
		}
		dir = next
	}
	return dir, s.rel, nil
}

// find looks for a path. If there is a symlink on the way it finds that: it leads
// where no guard is.
func find(s spot) (rel string, ok bool) {
	dir, rel, err := s.parent()
	if err != nil {
		return "", false
	}
	defer unix.Close(dir)
	var st unix.Stat_t
	if err := unix.Fstatat(dir, filepath.Base(rel), &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return "", false
	}
	return rel, rel == s.rel || st.Mode&unix.S_IFMT == unix.S_IFLNK
}

// findAll looks for paths, as find does. Most are names in one directory, which is opened
// once, and listed if it has few files: it is done before each command.
func findAll(spots []spot) (found []spot) {
	open, top := -1, ""
	var may func(name string) bool
	defer func() { _ = unix.Close(open) }() // Nothing was done with it. -1 does no harm.
	for _, s := range spots {
		if strings.Contains(s.rel, "/") {
			if rel, ok := find(s); ok {
				found = append(found, spot{s.top, rel})
			}
			continue
		}
		if s.top != top {
			_ = unix.Close(open) // As above.
			open, _ = unix.Open(s.top, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			top = s.top // If it is gone, open is -1, and nothing is found in it.
			may = mayHave(top)
		}
		var st unix.Stat_t
		if open >= 0 && may(s.rel) && unix.Fstatat(open, s.rel, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			found = append(found, s)
		}
	}
	return found
}

// mayHave lists a directory and returns what tells for a name whether it may be there. One
// listing costs less than to ask for each of fifty names. Where the directory ignores case, or
// has names with other letters than ASCII's, of which nobody knows which it takes for the
// same, it errs on the side of yes.
func mayHave(dir string) func(name string) bool {
	const few = 128
	always := func(string) bool { return true }
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return always
	}
	defer f.Close() // Read only.
	names, err := f.Readdirnames(few)
	if err != nil && err != io.EOF || len(names) == few {
		return always
	}
	there := make(map[string]bool, len(names))
	for _, name := range names {
		if strings.ContainsFunc(name, func(c rune) bool { return c >= utf8.RuneSelf }) {
			return always
		}
		there[strings.ToLower(name)] = true
	}
	return func(name string) bool { return there[strings.ToLower(name)] }
}

// moveAway renames what is at a path, which it does not follow.
func moveAway(s spot) (moved string, err error) {
	dir, rel, err := s.parent()
	if err != nil {
		return "", err
	}
	defer unix.Close(dir)
	if rel != s.rel {
		return "", errors.New("it was replaced meanwhile")
	}
	var random [4]byte
	_, _ = rand.Read(random[:]) // It never fails.
	name := filepath.Base(rel) + quarantined + hex.EncodeToString(random[:])
	if err := unix.Renameat2(dir, filepath.Base(rel), dir, name, unix.RENAME_NOREPLACE); err != nil {
		return "", err
	}
	return filepath.Join(filepath.Dir(s.path()), name), nil
}

// crowd is how many files a directory of git's may have, all of its logs
// included: there is one for each branch.
const crowd = 20_000

var errCrowded = fmt.Errorf("there are more than %d files in it, too many to look at", crowd)

// symlinks lists those in a directory of git's to which git writes: at the top,
// where messages and the index are, and in logs. Git makes none, but follows
// those that are there: a message of the sandbox's choice would be written to
// a file of its choice.
func symlinks(dir string) []sighting {
	var list []sighting
	left := crowd
	var walk func(rel string)
	walk = func(rel string) {
		f, err := os.OpenFile(filepath.Join(dir, rel), os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return
		}
		entries, _ := f.ReadDir(left + 1) // What can be read is what there is.
		_ = f.Close()                     // Read only.
		if left -= len(entries); left < 0 {
			return
		}
		for _, e := range entries {
			name := filepath.Join(rel, e.Name())
			if e.Type()&os.ModeSymlink != 0 {
				target, _ := os.Readlink(filepath.Join(dir, name)) // Gone meanwhile: then it is new the next time.
				list = append(list, sighting{spot: spot{dir, name}, target: target})
			} else if e.IsDir() && left >= 0 && (rel != "" || name == "logs") {
				walk(name)
			}
		}
	}
	walk("")
	if left < 0 {
		list = append(list, sighting{spot: spot{filepath.Dir(dir), filepath.Base(dir)}, crowded: true})
	}
	return list
}
