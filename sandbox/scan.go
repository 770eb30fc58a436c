package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// The bounds of a search for what is to be masked or protected. A sandbox starts in some
// milliseconds; with as many guards as this it is a second or two, and with twice as many
// four times that, since bwrap reads the list of mounts for each.
const (
	scanDepth   = 3
	scanEntries = 100_000
	scanMasks   = 500
	scanGuards  = 300 // each is two mounts, as the directory that holds it is one
)

// notSecret ends the names of files that are there to be copied, or for others.
var notSecret = []string{".example", ".sample", ".template", ".dist", ".pub"}

// scan is a search for names. A child has those of its parents besides its own,
// since it may see more of a parent's workspace than its own.
type scan struct {
	root  string
	globs []string // to be masked
	names []string // to be protected
	shown []string // by name, and so neither
}

func (s scan) equal(t scan) bool {
	return s.root == t.root && slices.Equal(s.globs, t.globs) && slices.Equal(s.names, t.names) && slices.Equal(s.shown, t.shown)
}

// own is the search that the policy itself asks for.
func (p Policy) own() scan {
	s := scan{root: p.FS.Workspace, globs: p.FS.ScanMasks, names: p.FS.ScanProtect}
	for _, src := range p.sources() {
		s.shown = append(s.shown, src.path)
	}
	return s
}

// globs fills in the default, and refuses what would be hidden for no good.
func (r *resolver) globs() error {
	list := r.p.FS.ScanMasks
	if list == nil {
		list = DefaultScanMasks
	}
	for i, glob := range list {
		if _, err := path.Match(glob, ""); err != nil || glob == "" || strings.Contains(glob, "/") || hasNUL(glob) {
			return mountError("it is one for a name, without a /", "FS.ScanMasks[%d]: %q is not a glob", i, glob)
		}
	}
	r.p.FS.ScanMasks = append([]string{}, list...) // Not nil, which means the default.
	own := r.p.own()
	for _, src := range r.p.sources() {
		if mask := own.hides(src.path); mask != "" {
			return mountError("take it out, or set FS.ScanMasks", "%s: %s is in %s, which FS.ScanMasks hides", src.field, src.path, mask)
		}
	}
	for _, s := range r.p.scans {
		for _, src := range append(r.p.sources(), named{"FS.Workspace", r.p.FS.Workspace}) {
			if mask := s.hides(src.path); mask != "" {
				return widens("see %s by %s (parent: hidden by FS.ScanMasks)", src.path, src.field)
			}
		}
	}
	return nil
}

// hides gives what of a path would be found, if it is there.
func (s scan) hides(file string) string {
	if file == s.root || !pathWithin(s.root, file) {
		return ""
	}
	at := s.root
	for i, name := range strings.Split(strings.TrimPrefix(file, s.root+"/"), "/") {
		if at = filepath.Join(at, name); i < scanDepth && s.match(at, name) {
			return at
		}
	}
	return ""
}

func (s scan) match(file, name string) bool {
	return !slices.Contains(s.shown, file) && slices.ContainsFunc(s.globs, func(glob string) bool {
		ok, _ := path.Match(glob, name) // The globs were checked.
		return ok && !slices.ContainsFunc(notSecret, func(end string) bool {
			return strings.HasSuffix(name, end) && !strings.HasSuffix(glob, end)
		})
	})
}

// found is what searches have found.
type found struct {
	masks  []entry
	guards []guard
	links  []spot // symlinks with a protected name
}

// scan looks for what is to be masked and protected.
func (p Policy) scan() (found, error) {
	var all found
	for _, s := range append(p.scans[:len(p.scans):len(p.scans)], p.own()) {
		if len(s.globs) == 0 && len(s.names) == 0 {
			continue
		}
		l := looker{scan: s, left: scanEntries}
		if err := l.look(); err != nil {
			return found{}, err
		}
		all.masks = append(all.masks, l.masks...)
		all.guards = append(all.guards, l.guards...)
		all.links = append(all.links, l.links...)
	}
	for _, e := range all.masks {
		for _, src := range append(p.sources(), named{"FS.Workspace", p.FS.Workspace}) {
			// By a symlink with the name of a secret: names were looked at before.
			if pathWithin(e.path, src.path) {
				return found{}, mountError("take the symlink away that leads there", "FS.ScanMasks: %s would be hidden with %s, which %s shows", e.path, src.path, src.field)
			}
		}
	}
	all.guards = p.thatHold(all.guards)
	if len(all.guards) > scanGuards {
		return found{}, mountError("show the directories that hold them by FS.ExtraRO, work in a directory below, or set FS.ScanProtect to fewer names",
			"FS.ScanProtect: more than %d files have a protected name and could be written, such as %q", scanGuards, all.guards[0].root)
	}
	return all, nil
}

// thatHold are those guards that have something to hold: the sandbox could write what they
// are for. What is in a directory comes after it.
func (p Policy) thatHold(guards []guard) []guard {
	v := viewOf(p)
	guards = slices.DeleteFunc(guards, func(g guard) bool {
		reach, _ := v.reach(g.root)
		return reach < writable
	})
	slices.SortFunc(guards, func(a, b guard) int { return strings.Compare(a.root, b.root) })
	return slices.CompactFunc(guards, func(a, b guard) bool { return a.root == b.root })
}

// A looker is a search under way. It follows no symlinks, also if somebody
// makes them while it looks.
type looker struct {
	scan
	found
	left int
}

func (l *looker) look() error {
	dir, err := os.Open(l.root)
	if err != nil {
		return l.failed(l.root, err)
	}
	return l.list(dir, l.root, 1, len(l.names) > 0)
}

func (l *looker) failed(path string, err error) error {
	return mountError("make it readable, or name what is secret in FS.Mask and what is protected in FS.Protect, and set FS.ScanMasks and FS.ScanProtect to empty lists",
		"%s: cannot look into %s: %v", l.field(), path, err)
}

// field is the one that the search is for.
func (l *looker) field() string {
	if len(l.globs) == 0 {
		return "FS.ScanProtect"
	}
	return "FS.ScanMasks"
}

// list looks at what is in a directory, which it closes. Names are looked for if
// protect is set, globs always.
func (l *looker) list(dir *os.File, path string, depth int, protect bool) error {
	defer dir.Close() // Read only.
	const some = 512
	for {
		entries, err := dir.ReadDir(some)
		for _, e := range entries {
			if err := l.entry(dir, filepath.Join(path, e.Name()), e, depth, protect); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, fs.ErrNotExist) {
			return nil // A directory that is deleted has nothing in it, and never will.
		}
		if err != nil {
			return l.failed(path, err)
		}
	}
}

func (l *looker) entry(dir *os.File, path string, e fs.DirEntry, depth int, protect bool) error {
	if l.left--; l.left < 0 {
		return mountError("name what is secret in FS.Mask and what is protected in FS.Protect, and set FS.ScanMasks and FS.ScanProtect to empty lists",
			"%s: there are more than %d files to look at in %s", l.field(), scanEntries, l.root)
	}
	if l.match(path, e.Name()) {
		return l.add(path, e)
	}
	if protect && slices.Contains(l.names, e.Name()) && !slices.Contains(l.shown, path) {
		l.protect(path, e)
		protect = false // What is in it is read-only as well.
	}
	protect = protect && !slices.Contains(notProtected, e.Name())
	if !e.IsDir() || depth == scanDepth || !protect && len(l.globs) == 0 {
		return nil
	}
	fd, err := unix.Openat(int(dir.Fd()), e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		return l.list(os.NewFile(uintptr(fd), path), path, depth+1, protect)
	case errors.Is(err, fs.ErrPermission):
		var st unix.Stat_t
		if unix.Fstatat(int(dir.Fd()), e.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) == nil && int(st.Uid) != os.Geteuid() {
			return nil // The sandbox cannot look into it either.
		}
		return l.failed(path, err)
	case isMissing(err) || err == unix.ELOOP:
		return nil // It was a directory until a moment ago.
	}
	return l.failed(path, err)
}

// add takes a match. Of a symlink it takes what it leads to, if that is in
// the same directory tree: the symlink itself tells nothing.
func (l *looker) add(path string, e fs.DirEntry) error {
	match := entry{path, e.IsDir()}
	if e.Type()&fs.ModeSymlink != 0 {
		var ok bool
		if match, ok = l.target(path); !ok {
			return nil
		}
	}
	if l.masks = append(l.masks, match); len(l.masks) > scanMasks {
		slices.SortFunc(l.masks, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
		return mountError("hide the directories that hold them by FS.Mask, or set FS.ScanMasks",
			"FS.ScanMasks: more than %d files match, such as %s", scanMasks, fmt.Sprintf("%q", l.masks[0].path))
	}
	return nil
}

// target is what a symlink leads to, if that is in the same directory tree and not shown
// by name.
func (l *looker) target(path string) (entry, bool) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == l.root || !pathWithin(l.root, real) || slices.Contains(l.shown, real) {
		return entry{}, false
	}
	info, err := os.Lstat(real)
	return entry{real, err == nil && info.IsDir()}, err == nil
}

// protect takes a file or directory with a protected name. Nothing can be mounted on a
// symlink: what it leads to is protected, and the tripwire sees if it leads elsewhere.
func (l *looker) protect(path string, e fs.DirEntry) {
	real := path
	if e.Type()&fs.ModeSymlink != 0 {
		l.links = append(l.links, spot{l.root, strings.TrimPrefix(path, l.root+"/")})
		match, ok := l.target(path)
		if !ok {
			return
		}
		real = match.path
	}
	g := whole(real)
	g.why, g.scanned = whyProtected(path), true
	l.guards = append(l.guards, g)
}
