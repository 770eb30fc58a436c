package sandbox

import (
	"fmt"
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
//   - FS.Access, Root, Git, Net.Mode, Net.Unix and Proc are not wider. FS.Home
//     is ReadOnlyHome only if the parent's is.
//   - With DomainsNet for both, each entry of Net.Allow is covered by one of the
//     parent's, Ports are the parent's or among them, and Private and SkipSNI are
//     set only where the parent's are. Deny of the parent is kept.
//   - FS.TmpSize, HomeSize and ShmSize are not larger; 0 is the parent's, or
//     the default if that is smaller.
//   - Env.Pass is in the parent's, but for what every sandbox has. Env.Set is free.
//   - Limits that the parent has are not larger; 0 takes the parent's. They are
//     for each sandbox: two children may have as much as two parents.
//   - RunAs is the parent's, which nil takes. If the parent has none it is free.
//   - Drift may go from DriftRespawn to DriftFail, and FS.Missing from
//     MissingTripwire to MissingRefuse. FS.Quarantine of the parent is kept.
//   - Masks of the parent are kept where the child would see what is there, and
//     Protect of the parent where it is in the child's workspace.
//   - FS.ScanMasks and FS.ScanProtect of the parent are kept besides the child's, for
//     the parent's workspace. ScanMasks hides neither the child's workspace nor what it shows.
//   - No file of the host is readable or writable that is not so for the parent,
//     by FS.ExtraRO, ExtraRW, HomeDir, TmpDir, Workspace or Root. So HomeDir and
//     TmpDir are the parent's, or what the parent can write.
//
// Paths are compared as they are now. The result starts no sandbox if there is a
// symlink in one of them later, as who can write the workspace could make it.
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
	if err := q.Net.fits(p.Net); err != nil {
		return Policy{}, err
	}
	// Once more: a path that the parent protects may not be one for the child,
	// and what it hides may be shown by the child.
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

// inherit fills in what the child does not ask for: sizes, limits, the user.
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
	if p.RunAs == nil {
		p.RunAs = parent.RunAs
	}
	p.Net = p.Net.inherit(parent.Net)
	p.FS.Quarantine = p.FS.Quarantine || parent.FS.Quarantine
	return p
}

// keep adds the parent's masks, searches and protected paths. A mask over the
// child's workspace, or over what else it shows, cannot be kept: then the views
// do not fit.
func (p Policy) keep(parent Policy) Policy {
	seen := viewOf(p)
	shows := append(p.sources(), named{"FS.Workspace", p.FS.Workspace})
	for _, mask := range parent.FS.Mask {
		over := slices.ContainsFunc(shows, func(src named) bool { return pathWithin(mask, src.path) })
		if reach, _ := seen.reach(mask); reach > hidden && !over {
			p.FS.Mask = append(p.FS.Mask, mask)
		}
	}
	for _, path := range parent.protects() {
		if path != p.FS.Workspace && pathWithin(p.FS.Workspace, path) {
			p.FS.Protect = append(p.FS.Protect, strings.TrimPrefix(path, p.FS.Workspace+"/"))
		}
	}
	p.scans = slices.Clone(p.scans)
	for _, s := range append(parent.scans[:len(parent.scans):len(parent.scans)], parent.own()) {
		if !s.equal(p.own()) && !slices.ContainsFunc(p.scans, s.equal) {
			p.scans = append(p.scans, s)
		}
	}
	p.settled = true
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
		{"MemoryMax", &l.MemoryMax}, {"PidsMax", &l.PidsMax},
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
		{"see the home directory", q.FS.Home == ReadOnlyHome && p.FS.Home != ReadOnlyHome, []string{"private", "", "shared"}[p.FS.Home]},
		{"write more of .git", q.FS.Git > p.FS.Git, []string{"read-only", "commit", "writable"}[p.FS.Git]},
		{"enable network", q.Net.Mode > p.Net.Mode, []string{"none", "allowed domains", "host"}[p.Net.Mode]},
		{"make Unix sockets", q.Net.Unix > p.Net.Unix, "blocked"},
		{"trace processes", q.Proc.AllowPtrace && !p.Proc.AllowPtrace, "blocked"},
		{"have a /proc", !q.Proc.NestedWeak && p.Proc.NestedWeak, "none"},
		{"run 32-bit programs", q.Proc.Allow32Bit && !p.Proc.Allow32Bit, "blocked"},
	}
	if q.unconfined != "" {
		return list[:1]
	}
	list = append(list, widening{"run as " + userText(q.user()), p.RunAs != nil && q.user() != p.user(), userText(p.user())})
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
	return append(list, widening{"go on after drift", q.Drift < p.Drift, "fail"},
		widening{"start without what is protected", q.FS.Missing < p.FS.Missing, "refuse"})
}
