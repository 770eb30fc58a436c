package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// binds checks what is shown besides. The order of mounts is the workspace,
// ExtraRO, ExtraRW, masks: nothing may cover what has to hold.
func (r *resolver) binds() error {
	seen := make(map[string]string) // Dst to field
	var err error
	if r.p.FS.ExtraRW, err = r.list("ExtraRW", r.p.FS.ExtraRW, true, seen); err != nil {
		return err
	}
	r.p.FS.ExtraRO, err = r.list("ExtraRO", r.p.FS.ExtraRO, false, seen)
	return err
}

// list gives the binds that are there, parents before children. One that is
// there twice is kept once.
func (r *resolver) list(field string, binds []Bind, writable bool, seen map[string]string) ([]Bind, error) {
	var list []Bind
	for i, b := range binds {
		name := fmt.Sprintf("FS.%s[%d]", field, i)
		b, ok, err := r.bind(name, b, writable)
		if err != nil {
			return nil, err
		}
		if !ok && writable {
			r.absentRW = append(r.absentRW, b)
		} else if !ok {
			r.absentRO = append(r.absentRO, b)
		}
		if !ok || slices.ContainsFunc(list, func(had Bind) bool { return had.Src == b.Src && had.Dst == b.Dst }) {
			continue
		}
		for dst, other := range seen {
			if dst == b.Dst || !writable && strings.HasPrefix(other, "FS.ExtraRW") && pathWithin(dst, b.Dst) {
				return nil, mountError("show it elsewhere", "%s: %s would be covered by %s", name, b.Dst, other)
			}
		}
		seen[b.Dst] = name
		list = append(list, b)
	}
	slices.SortStableFunc(list, func(a, b Bind) int { return strings.Compare(a.Dst, b.Dst) })
	return list, nil
}

// bind makes one bind absolute. It is false for one that is optional and
// missing, of which nothing else is looked at.
func (r *resolver) bind(name string, b Bind, writable bool) (Bind, bool, error) {
	no := func(hint, format string, args ...any) (Bind, bool, error) {
		return Bind{}, false, mountError(hint, name+": "+format, args...)
	}
	if b.Src == "" || hasNUL(b.Src+b.Dst) {
		return no("", "bind %q to %q: not a path", b.Src, b.Dst)
	}
	asked, err := filepath.Abs(b.Src)
	if err != nil {
		return no("", "bind %s: %v", b.Src, err)
	}
	r.named = append(r.named, named{name, asked})
	if b.Src, err = filepath.EvalSymlinks(asked); isMissing(err) && b.Optional {
		return Bind{Src: realPath(asked), Dst: cmp.Or(b.Dst, asked), Optional: true}, false, nil
	} else if isMissing(err) {
		return no("create it, or make it Optional", "bind %s: does not exist", asked)
	} else if err != nil {
		return no("", "bind %s: %v", asked, err)
	}
	if b.Dst == "" {
		b.Dst = asked
	}
	if !filepath.IsAbs(b.Dst) {
		return no("", "destination %s is not absolute", b.Dst)
	}
	b.Dst = filepath.Clean(b.Dst)
	if pathWithin("/proc", b.Src) { // By /proc/PID/root all of the host could be reached.
		return no("the sandbox has its own", "bind %s: this is the host's /proc", b.Src)
	}
	if err := r.destination(name, b); err != nil || !writable {
		return b, err == nil, err
	}
	if why, err := tooWide(b.Src); err != nil {
		return no("", "bind %s: %v", b.Src, err)
	} else if why != "" {
		return no("choose a sub directory", "bind %s: it %s", b.Src, why)
	}
	here, elsewhere := r.p.guarded()
	if pathWithin(b.Src, r.p.FS.Workspace) {
		here = append(here, r.p.FS.Workspace)
	}
	for _, path := range here {
		if pathWithin(b.Src, path) || pathWithin(path, b.Src) {
			return no("choose a directory beside it", "bind %s: %s would be writable by it", b.Src, path)
		}
	}
	for _, path := range elsewhere { // What holds one is guarded by any name.
		if pathWithin(path, b.Src) {
			return no("choose a directory beside it, or set FS.Git=GitWritable to accept", "bind %s: %s would be writable by it", b.Src, path)
		}
	}
	return b, true, nil
}

// destination says whether something may be mounted there: not over what the
// sandbox makes itself, not over the workspace or what is protected in it, and
// not by a symlink that who writes the workspace could have made.
func (r *resolver) destination(name string, b Bind) error {
	w := r.p.FS.Workspace
	guarded, _ := r.p.guarded()
	for _, dst := range []string{b.Dst, realPath(b.Dst)} {
		if dst == "/" || ownMount(dst) {
			return mountError("choose another destination", "%s: nothing can be shown at %s", name, b.Dst)
		}
		for _, path := range append(guarded, w) {
			if pathWithin(dst, path) || path != w && pathWithin(path, dst) {
				return mountError("choose another destination", "%s: %s would cover %s", name, b.Dst, path)
			}
		}
	}
	if !pathWithin(w, b.Dst) {
		return nil
	}
	link, err := firstLink(w, strings.TrimPrefix(b.Dst, w+"/"))
	if err == nil {
		_, err = os.Lstat(b.Dst)
	}
	if err != nil {
		return mountError("create it first", "%s: destination %s: %v", name, b.Dst, err)
	}
	if link != "" {
		return mountError("name where it leads", "%s: destination %s: %s is a symlink", name, b.Dst, link)
	}
	return nil
}

// mask follows symlinks, so that what they lead to is hidden.
func (r *resolver) mask() error {
	var masks []string
	for i, path := range r.p.FS.Mask {
		name := fmt.Sprintf("FS.Mask[%d]", i)
		if path == "" || hasNUL(path) {
			return mountError("", "%s: %q is not a path", name, path)
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(r.p.FS.Workspace, path)
		}
		path = filepath.Clean(path)
		r.named = append(r.named, named{name, path})
		path = realPath(path)
		if pathWithin(path, r.p.FS.Workspace) || ownMount(path) {
			return mountError("mask what is in it", "%s: %s cannot be hidden", name, path)
		}
		for _, src := range r.p.sources() {
			if pathWithin(path, src.path) {
				return mountError("take one of them out", "%s: %s would hide %s, which %s shows", name, path, src.path, src.field)
			}
		}
		if _, err := os.Stat(path); err != nil && !isMissing(err) {
			return mountError("", "%s: %v", name, err)
		}
		if !slices.Contains(masks, path) {
			masks = append(masks, path)
		}
	}
	r.p.FS.Mask = slices.Sorted(slices.Values(masks))
	for _, path := range r.p.FS.Mask {
		r.p.masks = append(r.p.masks, entry{path, true})
	}
	return nil
}

// sources are what is shown by name besides the workspace, and by which field.
func (p Policy) sources() []named {
	var list []named
	if p.FS.HomeDir != "" {
		list = append(list, named{homeDir, p.FS.HomeDir})
	}
	if p.FS.TmpDir != "" {
		list = append(list, named{tmpDir, p.FS.TmpDir})
	}
	for _, b := range p.FS.ExtraRO {
		list = append(list, named{"FS.ExtraRO", b.Src})
	}
	for _, b := range p.FS.ExtraRW {
		list = append(list, named{"FS.ExtraRW", b.Src})
	}
	return list
}
