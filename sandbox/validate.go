package sandbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

var (
	variableName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)
	hostName     = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`) // Linux has room for 64 bytes.
)

func (r *resolver) env() error {
	for _, name := range r.p.Env.Pass {
		if !variableName().MatchString(name) {
			return r.invalid("Env.Pass: %q is not the name of a variable", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.p.Env.Set)) {
		if !variableName().MatchString(name) {
			return r.invalid("Env.Set: %q is not the name of a variable", name)
		}
		if hasNUL(r.p.Env.Set[name]) { // The value may be a secret: it is not told.
			return r.invalid("Env.Set: the value of %s has a NUL", name)
		}
	}
	r.p.Env.Pass, r.p.Env.Set = slices.Clone(r.p.Env.Pass), maps.Clone(r.p.Env.Set)

	if r.p.Proc.Hostname == "" {
		r.p.Proc.Hostname = "sandbox"
	}
	if !hostName().MatchString(r.p.Proc.Hostname) {
		return r.invalid("Proc.Hostname: %q is not the name of a host", r.p.Proc.Hostname)
	}
	return nil
}

// sizes are in bytes. Limits are unsigned, and any value is one.
func (r *resolver) sizes() error {
	for _, s := range sizesOf(&r.p) {
		if *s.size < 0 {
			return &Error{Code: ErrLimits, Detail: fmt.Sprintf("%s is negative: %d", s.field, *s.size), Hint: "0 is the default"}
		}
		*s.size = size(*s.size, s.standard)
	}
	return nil
}

type sizeField struct {
	field    string
	size     *int64
	standard int64 // what 0 means
}

func sizesOf(p *Policy) []sizeField {
	return []sizeField{
		{"FS.TmpSize", &p.FS.TmpSize, defaultTmp},
		{"FS.HomeSize", &p.FS.HomeSize, defaultHome},
		{"FS.ShmSize", &p.FS.ShmSize, defaultShm},
	}
}

func (r *resolver) workspace() error {
	bad := func(hint, format string, args ...any) error {
		return &Error{Code: ErrBadWorkspace, Detail: fmt.Sprintf(format, args...), Hint: hint}
	}
	asked := r.p.FS.Workspace
	if asked == "" {
		return &Error{Code: ErrNoWorkspace, Detail: fmt.Sprintf(
			"policy %q is active but no workspace directory is known; refusing to run unsandboxed", r.p.Name)}
	}
	path, err := filepath.Abs(asked)
	if err != nil {
		return bad("name it by its absolute path", "workspace %s: %v", asked, err)
	}
	r.named = append(r.named, named{"FS.Workspace", path})
	path, err = filepath.EvalSymlinks(path)
	if isMissing(err) {
		return bad("create it, or choose another directory", "workspace %s does not exist", asked)
	}
	if err != nil {
		return bad("choose a directory that can be read", "workspace %s: %v", asked, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return bad("choose a directory that can be read", "workspace %s: %v", asked, err)
	}
	if !info.IsDir() {
		return bad("choose the directory that it is in", "workspace %s is not a directory", asked)
	}
	why, err := tooWide(path)
	if err != nil {
		return bad("choose a directory that can be read", "workspace %s: %v", asked, err)
	}
	if why != "" {
		return bad("choose a sub directory", "workspace %s %s", path, why)
	}
	r.p.FS.Workspace = path
	return nil
}

// protect makes the list that counts: DefaultProtect for nil, and .git as
// FS.Git says, whatever the list says. A .git that is a file, of a worktree, is
// protected as one. Then it makes the guards.
func (r *resolver) protect() error {
	list := r.p.FS.Protect
	if list == nil {
		list = DefaultProtect
	}
	if r.p.FS.Git == GitReadOnly {
		list = append([]string{".git"}, list...)
	}
	kept := []string{} // Not nil, which means DefaultProtect.
	for _, entry := range list {
		path := filepath.Clean(entry)
		if entry == "" || path == "." || hasNUL(entry) || filepath.IsAbs(entry) ||
			slices.Contains(strings.Split(filepath.ToSlash(entry), "/"), "..") {
			return &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect %q: it is not a path below the workspace", entry),
				Hint: "FS.Protect has relative paths without .."}
		}
		if slices.Contains(kept, path) || path == ".git" && r.p.FS.Git != GitReadOnly {
			continue
		}
		hint := "take it out of FS.Protect to accept"
		if path == ".git" {
			hint = "set FS.Git=GitWritable to accept"
		}
		if err := r.protectable(path, hint); err != nil {
			return err
		}
		kept = append(kept, path)
	}
	r.p.FS.Protect = kept
	for _, path := range r.p.protects() {
		r.p.guards = append(r.p.guards, whole(path))
	}
	return r.git()
}

// git guards what FS.Git says.
func (r *resolver) git() error {
	guards, err := gitGuards(r.p)
	if err != nil {
		return err
	}
	for _, g := range guards {
		if !pathWithin(r.p.FS.Workspace, g.root) {
			continue
		}
		for _, one := range g.parts {
			rel := strings.TrimPrefix(filepath.Join(g.root, one.rel), r.p.FS.Workspace+"/")
			if err := r.protectable(rel, "set FS.Git=GitWritable to accept"); err != nil {
				return err
			}
		}
	}
	r.p.guards = append(r.p.guards, guards...)
	slices.SortStableFunc(r.p.guards, func(a, b guard) int { return strings.Compare(a.root, b.root) })
	return nil
}

// guarded are the paths that nothing else may cover or give another name: all
// of a guard in the workspace; of one elsewhere, what is read-only.
func (p Policy) guarded() (here, elsewhere []string) {
	for _, g := range p.guards {
		for _, one := range g.parts {
			switch path := filepath.Join(g.root, one.rel); {
			case pathWithin(p.FS.Workspace, path):
				here = append(here, path)
			case !one.writable:
				elsewhere = append(elsewhere, path)
			}
		}
	}
	return here, elsewhere
}

// protectable refuses symlinks: who can write the workspace could let them lead
// elsewhere before the mount is made (CVE-2026-87766), and replace them later.
func (r *resolver) protectable(path, hint string) error {
	full := filepath.Join(r.p.FS.Workspace, path)
	link, err := firstLink(r.p.FS.Workspace, path)
	if err != nil {
		return &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect %s: %v", full, err)}
	}
	if link == "" {
		return nil
	}
	what := "it"
	if link != full {
		what = link
	}
	return &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect %s: %s is a symlink", full, what), Hint: hint}
}

func mountError(hint, format string, args ...any) error {
	return &Error{Code: ErrMount, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// hasNUL guards what goes to bwrap in a list that is separated by NULs: a path
// with one in it could add options.
func hasNUL(s string) bool { return strings.Contains(s, "\x00") }
