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

// The bounds of a search for what is to be masked. A sandbox starts in some
// milliseconds; with as many masks as this it is some hundred, since bwrap
// reads the list of mounts for each.
const (
	scanDepth   = 3
	scanEntries = 100_000
	scanMasks   = 500
)

// notSecret ends the names of files that are there to be copied, or for others.
var notSecret = []string{".example", ".sample", ".template", ".dist", ".pub"}

// scan is a search for names. A child has those of its parents besides its own,
// since it may see more of a parent's workspace than its own.
type scan struct {
	root  string
	globs []string
	shown []string // by name, and so never hidden
}

func (s scan) equal(t scan) bool {
	return s.root == t.root && slices.Equal(s.globs, t.globs) && slices.Equal(s.shown, t.shown)
}

// own is the search that the policy itself asks for.
func (p Policy) own() scan {
	s := scan{root: p.FS.Workspace, globs: p.FS.ScanMasks}
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

// scan looks for what is to be masked.
func (p Policy) scan() ([]entry, error) {
	var found []entry
	for _, s := range append(p.scans[:len(p.scans):len(p.scans)], p.own()) {
		if len(s.globs) == 0 {
			continue
		}
		l := looker{scan: s, left: scanEntries}
		if err := l.look(); err != nil {
			return nil, err
		}
		found = append(found, l.found...)
	}
	for _, e := range found {
		for _, src := range append(p.sources(), named{"FS.Workspace", p.FS.Workspace}) {
			// By a symlink with the name of a secret: names were looked at before.
			if pathWithin(e.path, src.path) {
				return nil, mountError("take the symlink away that leads there", "FS.ScanMasks: %s would be hidden with %s, which %s shows", e.path, src.path, src.field)
			}
		}
	}
	return found, nil
}

// A looker is a search under way. It follows no symlinks, also if somebody
// makes them while it looks.
type looker struct {
	scan
	found []entry
	left  int
}

func (l *looker) look() error {
	dir, err := os.Open(l.root)
	if err != nil {
		return l.failed(l.root, err)
	}
	return l.list(dir, l.root, 1)
}

func (l *looker) failed(path string, err error) error {
	return mountError("make it readable, or name what is secret in FS.Mask and set FS.ScanMasks to an empty list",
		"FS.ScanMasks: cannot look into %s: %v", path, err)
}

// list looks at what is in a directory, which it closes.
func (l *looker) list(dir *os.File, path string, depth int) error {
	defer dir.Close() // Read only.
	const some = 512
	for {
		entries, err := dir.ReadDir(some)
		for _, e := range entries {
			if err := l.entry(dir, filepath.Join(path, e.Name()), e, depth); err != nil {
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

func (l *looker) entry(dir *os.File, path string, e fs.DirEntry, depth int) error {
	if l.left--; l.left < 0 {
		return mountError("name what is secret in FS.Mask, and set FS.ScanMasks to an empty list",
			"FS.ScanMasks: there are more than %d files to look at in %s", scanEntries, l.root)
	}
	if l.match(path, e.Name()) {
		return l.add(path, e)
	}
	if !e.IsDir() || depth == scanDepth {
		return nil
	}
	fd, err := unix.Openat(int(dir.Fd()), e.Name(), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		return l.list(os.NewFile(uintptr(fd), path), path, depth+1)
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
	found := entry{path, e.IsDir()}
	if e.Type()&fs.ModeSymlink != 0 {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || real == l.root || !pathWithin(l.root, real) || slices.Contains(l.shown, real) {
			return nil
		}
		info, err := os.Lstat(real)
		if err != nil {
			return nil
		}
		found = entry{real, info.IsDir()}
	}
	if l.found = append(l.found, found); len(l.found) > scanMasks {
		slices.SortFunc(l.found, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
		return mountError("hide the directories that hold them by FS.Mask, or set FS.ScanMasks",
			"FS.ScanMasks: more than %d files match, such as %s", scanMasks, fmt.Sprintf("%q", l.found[0].path))
	}
	return nil
}
