package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/statedir"
)

// resolve gives p as it can be started now: absolute, and with what is there of
// the masks and of the protected paths. What is missing has nothing to hide or
// to protect, and a mount on it would leave an empty file on the host.
func (p Policy) resolve() (Policy, error) {
	p, err := p.absolute()
	if err != nil || p.unconfined != "" {
		return p, err
	}
	found, err := p.scan()
	if err != nil {
		return Policy{}, err
	}
	p.masks, p.guards = found.masks, append(p.guards, found.guards...)
	for _, path := range p.FS.Mask {
		// Stat: a link that leads nowhere hides nothing.
		if info, err := os.Stat(path); err == nil {
			p.masks = append(p.masks, entry{path, info.IsDir()})
		}
	}
	p.masks = append(p.masks, p.kept()...)
	// What is in a directory comes after it.
	slices.SortFunc(p.masks, func(a, b entry) int { return strings.Compare(a.path, b.path) })
	p.masks = slices.Compact(p.masks)
	if p, err = p.present(found.links); err != nil {
		return Policy{}, err
	}
	return p, nil
}

// kept hides the sessions that the user keeps by name, where they would be seen: who reaches the
// socket of one can do what it can, and it is in no sandbox. It hides each directory in which they can be: a
// limpet that was started with another environment uses another one. A directory is made if it must be: one
// that comes later could not be hidden.
func (p Policy) kept() (hide []entry) {
	dirs := statedir.Fallbacks(statedir.Kept)
	if dir, err := statedir.Default(statedir.Kept); err == nil { // Else it is not used.
		dirs = append(dirs, dir)
	}
	v := viewOf(p)
	for _, dir := range dirs {
		if reach, _ := v.reach(realPath(dir)); reach == hidden {
			continue
		}
		_ = private.MkdirAll(dir) // Where it cannot be made nobody makes it.
		if dir = realPath(dir); there(dir) {
			hide = append(hide, entry{dir, true})
		}
	}
	return hide
}

// there says whether something is at the path. A symlink is something.
func there(path string) bool {
	_, err := os.Lstat(path)
	return !isMissing(err)
}

// present keeps what is there of what the guards guard, and makes the tripwire
// of the rest. Links are symlinks with a protected name.
func (p Policy) present(links []spot) (Policy, error) {
	var guards []guard
	var missing []spot
	for _, g := range p.guards {
		here := g
		here.parts = nil
		for _, one := range g.parts {
			path := filepath.Join(g.root, one.rel)
			switch {
			case there(path):
				here.parts = append(here.parts, one)
			case pathWithin(p.FS.Workspace, path):
				missing = append(missing, spot{p.FS.Workspace, strings.TrimPrefix(path, p.FS.Workspace+"/")})
			case there(g.root):
				missing = append(missing, spot{g.root, one.rel})
			default:
				if top := p.shares(path); top != "" {
					missing = append(missing, spot{top, strings.TrimPrefix(path, top+"/")})
				}
			}
		}
		if len(here.parts) > 0 {
			guards = append(guards, here)
		}
	}
	p.guards = guards
	for _, s := range append(p.scans[:len(p.scans):len(p.scans)], p.own()) {
		for _, name := range s.names {
			if !there(filepath.Join(s.root, name)) {
				missing = append(missing, spot{s.root, name})
			}
		}
	}
	v := viewOf(p)
	written := func(path string) bool {
		reach, _ := v.reach(path)
		return reach == writable
	}
	// What is in a protected directory is protected already.
	unwritten := func(s spot) bool { return !written(s.path()) }
	missing = slices.DeleteFunc(missing, unwritten)
	slices.SortFunc(missing, func(a, b spot) int { return cmp.Or(strings.Compare(a.top, b.top), strings.Compare(a.rel, b.rel)) })
	p.wire = tripwire{missing: slices.Compact(missing), named: slices.DeleteFunc(links, unwritten)}
	for _, g := range p.guards {
		if g.links && written(g.root) {
			p.wire.gitDirs = append(p.wire.gitDirs, g.root)
		}
	}
	w := p.FS.Workspace
	if written(w) && p.FS.Git != GitWritable && !isGitDir(w) {
		p.wire.bare = w
	}
	if p.FS.Git == GitCommit {
		f := finder{workspace: w}
		repo, err := f.repository(w)
		if err != nil {
			return Policy{}, err
		}
		if repo.dir != "" && written(w) && written(repo.dir) {
			p.wire.index = repo
		}
	}
	if p.FS.Missing == MissingRefuse {
		return p, p.refuseMissing()
	}
	return p, nil
}

// shares is the directory outside of the workspace that has the path and that the sandbox
// could write, or empty.
func (p Policy) shares(path string) string {
	dirs := []string{p.FS.HomeDir, p.FS.TmpDir}
	for _, b := range p.FS.ExtraRW {
		dirs = append(dirs, b.Src)
	}
	i := slices.IndexFunc(dirs, func(dir string) bool { return dir != "" && dir != path && pathWithin(dir, path) })
	if i < 0 {
		return ""
	}
	return dirs[i]
}

// refuseMissing is for MissingRefuse, and for what FS.Protect lists.
func (p Policy) refuseMissing() error {
	dotGit := filepath.Join(p.FS.Workspace, ".git")
	for _, s := range p.wire.missing {
		if s.path() != dotGit && !slices.Contains(p.protects(), s.path()) {
			continue
		}
		hint := "create it, take it out of FS.Protect, or set FS.Missing=MissingTripwire"
		if s.path() == dotGit {
			hint = "create it, or set FS.Git=GitWritable or FS.Missing=MissingTripwire"
		}
		return &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect %s: it is missing", s.path()), Hint: hint}
	}
	return nil
}

// protects gives the absolute paths of FS.Protect.
func (p Policy) protects() []string {
	var paths []string
	for _, path := range p.FS.Protect {
		paths = append(paths, filepath.Join(p.FS.Workspace, path))
	}
	return paths
}

// absolute checks p and gives a copy that shares nothing with it, with every
// default filled in and every path absolute and clean; the workspace, sources
// and masks are without symlinks too. FS.Protect stays relative. It keeps masks
// and protected paths that are missing: they may be there when p is started.
func (p Policy) absolute() (Policy, error) {
	r, err := p.resolver()
	return r.p, err
}

// settle is absolute for one who starts more than one sandbox: the first of them
// may not say where the paths of the next one lead. It keeps what is optional and
// missing, for it may be there later.
func (p Policy) settle() (Policy, error) {
	r, err := p.resolver()
	if err != nil {
		return Policy{}, err
	}
	r.p.FS.ExtraRO = append(r.p.FS.ExtraRO, r.absentRO...)
	r.p.FS.ExtraRW = append(r.p.FS.ExtraRW, r.absentRW...)
	r.p.settled = true
	return r.p, nil
}

func (p Policy) resolver() (resolver, error) {
	r := resolver{p: p}
	r.p.guards, r.p.masks, r.p.wire = nil, nil, tripwire{}
	if err := r.name(); err != nil {
		return resolver{}, err
	}
	if p.unconfined != "" {
		return r, nil
	}
	for _, step := range []func() error{
		r.modes, r.network, r.runAs, r.env, r.sizes, r.workspace, r.protect, r.shared, r.binds, r.apart, r.mask, r.names, r.globs, r.links,
	} {
		if err := step(); err != nil {
			return resolver{}, err
		}
	}
	return r, nil
}

// A resolver makes one policy absolute, step by step.
type resolver struct {
	p                  Policy
	named              []named // of the sources, before symlinks were followed
	absentRO, absentRW []Bind  // optional, and missing
}

// named is a path as the policy has it.
type named struct{ field, path string }

func (r *resolver) name() error {
	switch {
	case r.p.unconfined != "" && strings.TrimSpace(r.p.unconfined) != "" && r.p.RunAs != nil:
		return &Error{Code: ErrNoPolicy, Detail: "Unconfined has a user to run as", Hint: "leave RunAs out: without a sandbox, what runs is as free as this program"}
	case r.p.unconfined != "" && strings.TrimSpace(r.p.unconfined) != "":
		return nil
	case r.p.unconfined != "" || r.p.Name == "unconfined":
		return &Error{Code: ErrNoPolicy, Detail: "Unconfined has no reason", Hint: "say why there is to be no sandbox"}
	case r.p.Name == "":
		return &Error{Code: ErrNoPolicy, Detail: "the policy is empty",
			Hint: "begin with a preset, such as WorkspaceWrite, or ask for Unconfined explicitly"}
	}
	return nil
}

// modes refuses numbers that are no constants: nobody knows what they allow.
func (r *resolver) modes() error {
	for _, m := range []struct {
		field     string
		mode, max int
	}{
		{"FS.Access", int(r.p.FS.Access), int(ReadOnlyAccess)},
		{"FS.Root", int(r.p.FS.Root), int(All)},
		{"FS.Home", int(r.p.FS.Home), int(SharedHome)},
		{"FS.Tmp", int(r.p.FS.Tmp), int(SharedTmp)},
		{"FS.Git", int(r.p.FS.Git), int(GitWritable)},
		{"FS.Missing", int(r.p.FS.Missing), int(MissingRefuse)},
		{"Net.Mode", int(r.p.Net.Mode), int(HostNet)},
		{"Net.Unix", int(r.p.Net.Unix), int(UnixAllowed)},
		{"Drift", int(r.p.Drift), int(DriftFail)},
	} {
		if m.mode < 0 || m.mode > m.max {
			return r.invalid("%s is %d, which is none of its constants", m.field, m.mode)
		}
	}
	if r.p.Proc.NestedWeak && r.p.Net.Mode == DomainsNet {
		return r.invalid("the proxy of DomainsNet needs a /proc, which Proc.NestedWeak does without")
	}
	return nil
}

// links refuses symlinks by which a source could lead elsewhere the next time:
// those that the sandbox can make, and in a child's policy all. Else a command
// would put one in the place of a directory, and the next sandbox show what it
// leads to.
func (r *resolver) links() error {
	written := []string{r.p.FS.Workspace} // Another sandbox may write it.
	for _, b := range r.p.FS.ExtraRW {
		written = append(written, b.Src)
	}
	for _, dir := range []string{r.p.FS.HomeDir, r.p.FS.TmpDir} {
		if dir != "" {
			written = append(written, dir)
		}
	}
	for _, n := range r.named {
		links, err := linksOn(n.path)
		if err != nil {
			return mountError("", "%s: %v", n.field, err)
		}
		for _, link := range links {
			if r.p.settled || slices.ContainsFunc(written, func(dir string) bool { return pathWithin(dir, link) }) {
				err := &Error{Code: ErrMount, Hint: "name where it leads", Detail: fmt.Sprintf("%s: %s: %s is a symlink that a sandbox could have made", n.field, n.path, link)}
				if n.field == "FS.Workspace" {
					err.Code = ErrBadWorkspace
				}
				return err
			}
		}
	}
	return nil
}

func (r *resolver) invalid(format string, args ...any) error {
	return &Error{Code: ErrNoPolicy, Detail: fmt.Sprintf("policy %q: ", r.p.Name) + fmt.Sprintf(format, args...)}
}
