package sandbox

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// resolve gives p as it can be started now: absolute, and with what is there of
// the masks and of the protected paths. What is missing has nothing to hide or
// to protect, and a mount on it would leave an empty file on the host.
func (p Policy) resolve() (Policy, error) {
	p, err := p.absolute()
	if err != nil || p.unconfined != "" {
		return p, err
	}
	for _, path := range p.FS.Mask {
		// Stat: a link that leads nowhere hides nothing.
		if info, err := os.Stat(path); err == nil {
			p.masks = append(p.masks, entry{path, info.IsDir()})
		}
	}
	for _, path := range slices.Sorted(slices.Values(p.protects())) {
		// What is in a protected directory is protected already; a mount for it
		// would have the directory pinned, and so writable again.
		if _, err := os.Lstat(path); isMissing(err) || slices.ContainsFunc(p.protected, func(dir string) bool {
			return pathWithin(dir, path)
		}) {
			continue
		}
		p.protected = append(p.protected, path)
	}
	return p, nil
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
	r := resolver{p: p}
	r.p.protected, r.p.masks = nil, nil
	if err := r.name(); err != nil {
		return Policy{}, err
	}
	if p.unconfined != "" {
		return r.p, nil
	}
	for _, step := range []func() error{r.modes, r.env, r.sizes, r.workspace, r.protect, r.binds, r.mask} {
		if err := step(); err != nil {
			return Policy{}, err
		}
	}
	return r.p, nil
}

// A resolver makes one policy absolute, step by step.
type resolver struct {
	p Policy
}

func (r *resolver) name() error {
	switch {
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
		{"FS.Home", int(r.p.FS.Home), int(ReadOnlyHome)},
		{"FS.Git", int(r.p.FS.Git), int(GitWritable)},
		{"Net.Mode", int(r.p.Net.Mode), int(HostNet)},
		{"Net.Unix", int(r.p.Net.Unix), int(UnixAllowed)},
		{"Drift", int(r.p.Drift), int(DriftFail)},
	} {
		if m.mode < 0 || m.mode > m.max {
			return r.invalid("%s is %d, which is none of its constants", m.field, m.mode)
		}
	}
	return nil
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	hostName     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]{0,63}$`) // Linux has room for 64 bytes.
)

func (r *resolver) env() error {
	for _, name := range r.p.Env.Pass {
		if !variableName.MatchString(name) {
			return r.invalid("Env.Pass: %q is not the name of a variable", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.p.Env.Set)) {
		if !variableName.MatchString(name) {
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
	if !hostName.MatchString(r.p.Proc.Hostname) {
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
	named := r.p.FS.Workspace
	if named == "" {
		return &Error{Code: ErrNoWorkspace, Detail: fmt.Sprintf(
			"policy %q is active but no workspace directory is known; refusing to run unsandboxed", r.p.Name)}
	}
	path, err := filepath.Abs(named)
	if err != nil {
		return bad("name it by its absolute path", "workspace %s: %v", named, err)
	}
	path, err = filepath.EvalSymlinks(path)
	if isMissing(err) {
		return bad("create it, or choose another directory", "workspace %s does not exist", named)
	}
	if err != nil {
		return bad("choose a directory that can be read", "workspace %s: %v", named, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return bad("choose a directory that can be read", "workspace %s: %v", named, err)
	}
	if !info.IsDir() {
		return bad("choose the directory that it is in", "workspace %s is not a directory", named)
	}
	why, err := tooWide(path)
	if err != nil {
		return bad("choose a directory that can be read", "workspace %s: %v", named, err)
	}
	if why != "" {
		return bad("choose a sub directory", "workspace %s %s", path, why)
	}
	r.p.FS.Workspace = path
	return nil
}

// protect makes the list that counts: DefaultProtect for nil, and .git as
// FS.Git says, whatever the list says. A .git that is a file, of a worktree, is
// protected as one.
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
		if slices.Contains(kept, path) || path == ".git" && r.p.FS.Git == GitWritable {
			continue
		}
		if err := r.protectable(path); err != nil {
			return err
		}
		kept = append(kept, path)
	}
	r.p.FS.Protect = kept
	return nil
}

// protectable refuses symlinks: who can write the workspace could let them lead
// elsewhere before the mount is made (CVE-2026-87766), and replace them later.
func (r *resolver) protectable(path string) error {
	full := filepath.Join(r.p.FS.Workspace, path)
	link, err := firstLink(r.p.FS.Workspace, path)
	if err != nil {
		return &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect %s: %v", full, err)}
	}
	if link == "" {
		return nil
	}
	what, hint := "it", "take it out of FS.Protect to accept"
	if link != full {
		what = link
	}
	if path == ".git" {
		hint = "set FS.Git=GitWritable to accept"
	}
	return &Error{Code: ErrProtect, Detail: fmt.Sprintf("cannot protect %s: %s is a symlink", full, what), Hint: hint}
}

func (r *resolver) invalid(format string, args ...any) error {
	return &Error{Code: ErrNoPolicy, Detail: fmt.Sprintf("policy %q: ", r.p.Name) + fmt.Sprintf(format, args...)}
}

func mountError(hint, format string, args ...any) error {
	return &Error{Code: ErrMount, Detail: fmt.Sprintf(format, args...), Hint: hint}
}

// hasNUL guards what goes to bwrap in a list that is separated by NULs: a path
// with one in it could add options.
func hasNUL(s string) bool { return strings.Contains(s, "\x00") }
