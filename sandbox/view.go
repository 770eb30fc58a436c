package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// reach is what can be done to a file of the host.
type reach int

const (
	hidden reach = iota
	readable
	writable
)

// shown is one mount: the path at of the sandbox is src of the host.
type shown struct {
	at, src string
	reach   reach
	field   string // of Policy, that asks for it
}

// view lists mounts in the order in which they are made: what is later covers
// what is earlier. The first one is at "/".
type view []shown

// viewOf is the view of a policy that is absolute, with every path that could be
// masked or protected. What depends on the host, and what is not worth looking
// at, counts as hidden.
func viewOf(p Policy) view {
	// Of /etc, root sees less than what is there.
	h := host{home: userHome(), etc: []entry{{"/etc", true}, {"/sys", true}}}
	return mountsOf(p, h, place{}).view
}

// top is the mount that has the path of the sandbox. The first one has all.
func (v view) top(path string) int {
	top := len(v) - 1
	for !pathWithin(v[top].at, path) {
		top--
	}
	return top
}

// reach says what can be done to a path of the host, and by which field: it may
// be at several paths of the sandbox.
func (v view) reach(path string) (best reach, field string) {
	for i, m := range v {
		if m.reach > best && pathWithin(m.src, path) && v.top(rebase(path, m.src, m.at)) == i {
			best, field = m.reach, m.field
		}
	}
	return best, field
}

// startDir is where a process starts that shall start in that directory of the host:
// at its own name, if it is shown, or where its symlinks lead.
func (v view) startDir(dir string) string {
	if reach, _ := v.reach(dir); reach > hidden {
		return dir
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		if reach, _ := v.reach(real); reach > hidden {
			return real
		}
	}
	return dir // It may be there all the same, as /tmp is. Bwrap says if it is not.
}

// keepsPrivate refuses a session directory beside which others can be seen. By their
// files one session could give orders to another, which may be in no sandbox.
func (v view) keepsPrivate(sessionDir string) error {
	if sessionDir == "" {
		return nil
	}
	beside := filepath.Dir(sessionDir)
	if reach, field := v.reach(beside); reach > hidden {
		return &Error{
			Code: ErrProtect, Detail: fmt.Sprintf("the files of other sessions, in %s, cannot be protected: %s shows them", beside, field),
			Hint: "set RuntimeDir to a directory that the sandbox does not show",
		}
	}
	return nil
}

// keeps refuses a state directory of which the sandbox sees anything: by the records of
// jobs it would say which processes are signalled, and terminals can be typed into by a
// socket that is there. Paths are the directory, with the symlinks on the way to it, and
// where they lead; it is the last of them.
func (v view) keeps(paths ...string) error {
	dir := paths[len(paths)-1]
	no := func(field, format string, args ...any) error {
		return &Error{
			Code: ErrProtect, Detail: fmt.Sprintf("the state directory %s cannot be protected: %s shows ", dir, field) + fmt.Sprintf(format, args...),
			Hint: "set StateDir to a directory that the sandbox does not show",
		}
	}
	for _, path := range paths {
		if reach, field := v.reach(path); reach > hidden && path == dir {
			return no(field, "it")
		} else if reach > hidden {
			return no(field, "%s, by which it is named", path)
		}
	}
	for _, m := range v {
		if m.reach > hidden && pathWithin(dir, m.src) {
			return no(m.field, "%s, which is in it", m.src)
		}
	}
	return nil
}

// edges are the paths of the host below which reach may change.
func (v view) edges() []string {
	var edges []string
	for _, m := range v {
		for _, n := range v {
			if m.reach > hidden && pathWithin(m.at, n.at) {
				edges = append(edges, rebase(n.at, m.at, m.src))
			}
		}
	}
	return edges
}

// fits compares views. It is enough to look at the edges of both: any path has
// the reach of the nearest edge above it.
func (v view) fits(parent view) error {
	edges := slices.Concat(v.edges(), parent.edges())
	slices.Sort(edges)
	for _, path := range slices.Compact(edges) {
		had, _ := parent.reach(path)
		if got, field := v.reach(path); got > had {
			return widens("%s %s by %s (parent: %s)", []string{"", "see", "write"}[got], path, field, []string{"hidden", "read-only"}[had])
		}
	}
	return nil
}

func rebase(path, from, to string) string { return filepath.Join(to, strings.TrimPrefix(path, from)) }
