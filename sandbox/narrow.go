package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Narrow gives the policy of a child that asks for q and runs under p: q, with
// every path absolute, if it is nowhere wider than p. If it is, the error is an
// [*Error], ErrWiden, that names the first thing that is wider.
//
// The rules, in this order:
//   - Only who is unconfined has unconfined children; it may have any child.
//   - FS.Workspace is the parent's or in it.
//   - FS.Access, Root, Home, Git, Net.Mode, Net.Unix and Proc are not wider.
//   - FS.TmpSize, HomeSize and ShmSize are not larger; 0 is the parent's, or
//     the default if that is smaller.
//   - Env.Pass is in the parent's, but for what every sandbox has. Env.Set is free.
//   - Limits that the parent has are not larger; 0 takes the parent's.
//   - Drift may go from DriftRespawn to DriftFail.
//   - Masks of the parent are kept where the child would see what is there, and
//     Protect of the parent where it is in the child's workspace.
//   - No file of the host is readable or writable that is not so for the parent,
//     by FS.ExtraRO, FS.ExtraRW, FS.Workspace or FS.Root.
//
// Paths are compared as they are now. Who can write the workspace can put a
// symlink in the place of a directory: start with the result at once.
func (p Policy) Narrow(q Policy) (Policy, error) {
	p, err := p.absolute()
	if err != nil {
		return Policy{}, err
	}
	if p.unconfined == "" && q.unconfined == "" {
		q = q.inherit(p)
	}
	if q, err = q.absolute(); err != nil || p.unconfined != "" {
		return q, err
	}
	for _, rule := range widenings(p, q) {
		if rule.wider {
			return Policy{}, widens("%s (parent: %s)", rule.what, rule.parent)
		}
	}
	// Once more: a path that the parent protects may not be one for the child.
	if q, err = q.keep(p).absolute(); err != nil {
		return Policy{}, err
	}
	if err := viewOf(q).fits(viewOf(p)); err != nil {
		return Policy{}, err
	}
	return q, nil
}

func widens(format string, args ...any) error {
	return &Error{Code: ErrWiden, Detail: "child policy may not " + fmt.Sprintf(format, args...)}
}

// inherit fills in the sizes and limits that the child does not ask for.
func (p Policy) inherit(parent Policy) Policy {
	from := sizesOf(&parent)
	for i, s := range sizesOf(&p) {
		if *s.size == 0 {
			*s.size = min(*from[i].size, s.standard)
		}
	}
	limits := limitsOf(&parent)
	for i, l := range limitsOf(&p) {
		if *l.limit == 0 {
			*l.limit = *limits[i].limit
		}
	}
	return p
}

// keep adds the parent's masks and protected paths. A mask over the child's
// workspace cannot be kept: then the views do not fit.
func (p Policy) keep(parent Policy) Policy {
	seen := viewOf(p)
	for _, mask := range parent.FS.Mask {
		if seen[seen.top(mask)].reach > hidden && !pathWithin(mask, p.FS.Workspace) {
			p.FS.Mask = append(p.FS.Mask, mask)
		}
	}
	for _, path := range parent.protects() {
		if path != p.FS.Workspace && pathWithin(p.FS.Workspace, path) {
			p.FS.Protect = append(p.FS.Protect, strings.TrimPrefix(path, p.FS.Workspace+"/"))
		}
	}
	return p
}

type limitField struct {
	field string
	limit *uint64
}

func limitsOf(p *Policy) []limitField {
	l := &p.Limits
	return []limitField{
		{"NProc", &l.NProc}, {"NoFile", &l.NoFile}, {"FileSize", &l.FileSize}, {"AddressSpace", &l.AddressSpace}, {"CPU", &l.CPU},
	}
}

// A widening is one thing in which a child may be wider.
type widening struct {
	what   string // after "may not"
	wider  bool
	parent string
}

func widenings(p, q Policy) []widening {
	list := []widening{
		{"be unconfined", q.unconfined != "", p.Name},
		{"work in " + q.FS.Workspace, !pathWithin(p.FS.Workspace, q.FS.Workspace), p.FS.Workspace},
		{"have more access to the workspace", q.FS.Access < p.FS.Access, []string{"read-write", "overlay", "read-only"}[p.FS.Access]},
		{"see all of the system", q.FS.Root > p.FS.Root, "system"},
		{"see the home directory", q.FS.Home > p.FS.Home, "private"},
		{"write .git", q.FS.Git > p.FS.Git, "read-only"},
		{"enable network", q.Net.Mode > p.Net.Mode, "none"},
		{"make Unix sockets", q.Net.Unix > p.Net.Unix, "blocked"},
		{"trace processes", q.Proc.AllowPtrace && !p.Proc.AllowPtrace, "blocked"},
		{"run 32-bit programs", q.Proc.Allow32Bit && !p.Proc.Allow32Bit, "blocked"},
	}
	if q.unconfined != "" {
		return list[:1]
	}
	of := sizesOf(&p)
	for i, s := range sizesOf(&q) {
		list = append(list, widening{"have a larger " + s.field, *s.size > *of[i].size, fmt.Sprint(*of[i].size)})
	}
	for _, name := range q.Env.Pass {
		passed := slices.Contains(always, name) || slices.Contains(p.Env.Pass, name) ||
			slices.ContainsFunc(alwaysPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		list = append(list, widening{"have " + name + " by Env.Pass", !passed, "not passed"})
	}
	limits := limitsOf(&p)
	for i, l := range limitsOf(&q) {
		had := *limits[i].limit
		list = append(list, widening{"have a larger Limits." + l.field, had != 0 && *l.limit > had, fmt.Sprint(had)})
	}
	return append(list, widening{"go on after drift", q.Drift < p.Drift, "fail"})
}

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
	field   string
}

// view lists the mounts of a policy, in the order of [plan]: what is later
// covers what is earlier.
type view []shown

func viewOf(p Policy) view {
	v := view{{"/", "/", hidden, "FS.Root"}}
	if p.FS.Root == All {
		v[0].reach = readable
	}
	// Of /etc, root sees less than what is there.
	for _, path := range []string{"/etc", "/dev", "/proc", "/sys", "/run", "/tmp", "/var/tmp"} {
		v = append(v, shown{path, path, hidden, "FS.Root"})
	}
	if home, err := os.UserHomeDir(); err == nil {
		home = realPath(filepath.Clean(home))
		v = append(v, shown{home, home, hidden, "FS.Home"})
		if p.FS.Home == ReadOnlyHome {
			v[len(v)-1].reach = readable
		}
	}
	access := readable
	if p.FS.Access == ReadWrite {
		access = writable
	}
	v = append(v, shown{p.FS.Workspace, p.FS.Workspace, access, "FS.Workspace"})
	for _, path := range p.protects() {
		v = append(v, shown{path, path, readable, "FS.Protect"})
	}
	for _, b := range p.FS.ExtraRO {
		v = append(v, shown{b.Dst, b.Src, readable, "FS.ExtraRO"})
	}
	for _, b := range p.FS.ExtraRW {
		v = append(v, shown{b.Dst, b.Src, writable, "FS.ExtraRW"})
	}
	for _, path := range p.FS.Mask {
		v = append(v, shown{path, path, hidden, "FS.Mask"})
	}
	return v
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
	for _, path := range slices.Concat(v.edges(), parent.edges()) {
		had, _ := parent.reach(path)
		if got, field := v.reach(path); got > had {
			return widens("%s %s by %s (parent: %s)", []string{"", "see", "write"}[got], path, field, []string{"hidden", "read-only"}[had])
		}
	}
	return nil
}

func rebase(path, from, to string) string { return filepath.Join(to, strings.TrimPrefix(path, from)) }
