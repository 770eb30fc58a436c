package sandbox

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// item is a group of arguments for bwrap, and why they are there.
type item struct {
	why  string
	args []string
}

// The sizes that a Policy's 0 stands for.
const (
	defaultTmp  = 256 << 20
	defaultHome = 256 << 20
	defaultShm  = 64 << 20
	varTmp      = 64 << 20
)

// place is where a process starts, and the files that it needs besides.
type place struct {
	dir        string // its working directory
	sessionDir string // by which it speaks with limpet; may be empty
}

// plan makes bwrap's arguments of a policy that was resolved. It looks at
// nothing but its own arguments. Order matters: parents come before children,
// what is later covers what is earlier, and what is made read-only is so last.
func plan(p Policy, h host, at place) []item {
	var items []item
	add := func(why string, args ...string) { items = append(items, item{why, args}) }

	add("namespaces of its own, in which no further ones can be made", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--unshare-cgroup-try", "--disable-userns")
	if p.Net.Mode == NoNet {
		add("no network", "--unshare-net")
	}
	add("no capabilities, also for root", "--cap-drop", "ALL")
	add("a name that is not the host's", "--hostname", p.Proc.Hostname)
	add("it ends with the program, and has no terminal", "--die-with-parent", "--new-session")

	items = append(items, system(p, h)...)
	add("a few devices, none of the host's", "--dev", "/dev")
	add("shared memory of its own", tmpfs("/dev/shm", "1777", size(p.FS.ShmSize, defaultShm))...)
	add("", "--remount-ro", "/dev")
	add("its own processes", "--proc", "/proc")
	for _, path := range h.cover {
		if slices.Contains(procHide, path) {
			add("tells about the host", "--ro-bind", "/dev/null", path)
		} else {
			add("changes the kernel where it can be written", "--ro-bind", path, path)
		}
	}
	add("nothing of what runs on the host", "--perms", "0755", "--tmpfs", "/run")
	add("temporary files that go with the session", tmpfs("/tmp", "1777", size(p.FS.TmpSize, defaultTmp))...)
	add("", tmpfs("/var/tmp", "1777", varTmp)...)
	if p.FS.Home == PrivateHome && h.home != "" {
		add("an empty home that goes with the session", tmpfs(h.home, "0700", size(p.FS.HomeSize, defaultHome))...)
	} else if p.FS.Home == ReadOnlyHome && h.home != "" {
		add("the home directory, read-only", "--ro-bind", h.home, h.home)
	}
	items = append(items, workspace(p)...)
	for _, b := range p.FS.ExtraRO {
		add("ExtraRO", "--ro-bind", b.Src, b.Dst)
	}
	for _, b := range p.FS.ExtraRW {
		add("ExtraRW", "--bind", b.Src, b.Dst)
	}
	for _, m := range p.masks {
		add("Mask", mask(m)...)
	}
	if at.sessionDir != "" {
		add("the files by which the shell is spoken to", "--bind", at.sessionDir, at.sessionDir)
	}
	add("", "--remount-ro", "/run")
	if p.FS.Root == System {
		add("nothing is written besides", "--remount-ro", "/")
	}
	add("where it starts", "--chdir", at.dir)
	return items
}

// system shows the host's programs.
func system(p Policy, h host) []item {
	if p.FS.Root == All {
		return append([]item{{"everything, read-only", []string{"--ro-bind", "/", "/"}}}, etc(h)...)
	}
	var items []item
	for _, dir := range topDirs {
		if target, ok := h.links[dir]; ok {
			items = append(items, item{"as on the host", []string{"--symlink", target, dir}})
		} else if slices.Contains(h.dirs, dir) {
			items = append(items, item{"the system's programs and settings", []string{"--ro-bind", dir, dir}})
		}
	}
	items = append(items, item{"directories that programs expect", []string{
		"--dir", "/var", "--symlink", "../run", "/var/run", "--dir", "/srv", "--dir", "/mnt",
	}})
	return append(items, etc(h)...)
}

// etc hides from root what other users may not read either.
func etc(h host) []item {
	var items []item
	for _, e := range h.etc {
		items = append(items, item{"not for everybody to read", mask(e)})
	}
	return items
}

// workspace shows the workspace, and what in it is read-only. The directories
// above a protected path are mounted on themselves: what is a mount point
// cannot be renamed, and so not be put out of the way with what it protects.
func workspace(p Policy) []item {
	w := p.FS.Workspace
	var items []item
	switch p.FS.Access {
	case ReadWrite:
		items = append(items, item{"the workspace", []string{"--bind", w, w}})
	case ReadOnlyAccess:
		items = append(items, item{"the workspace, read-only", []string{"--ro-bind", w, w}})
	case Overlay:
		items = append(items, item{"the workspace; what is written is thrown away", []string{"--overlay-src", w, "--tmp-overlay", w}})
	}
	if p.FS.Access != ReadWrite {
		return items
	}
	pinned := make(map[string]bool)
	for _, path := range p.protected {
		for _, dir := range between(w, path) {
			if !pinned[dir] {
				pinned[dir] = true
				items = append(items, item{"cannot be renamed, for what it holds", []string{"--bind", dir, dir}})
			}
		}
		items = append(items, item{"makes programs of the host run what it says", []string{"--ro-bind", path, path}})
	}
	return items
}

// between lists the directories below top and above path, from the top down.
func between(top, path string) []string {
	var dirs []string
	for dir := filepath.Dir(path); len(dir) > len(top) && strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs
}

func mask(e entry) []string {
	if e.dir {
		return []string{"--perms", "0555", "--tmpfs", e.path, "--remount-ro", e.path}
	}
	return []string{"--ro-bind", "/dev/null", e.path}
}

func tmpfs(path, perms string, bytes int64) []string {
	return []string{"--perms", perms, "--size", strconv.FormatInt(bytes, 10), "--tmpfs", path}
}

func size(asked, standard int64) int64 {
	if asked == 0 {
		return standard
	}
	return asked
}

// arguments joins the plan.
func arguments(items []item) []string {
	var args []string
	for _, i := range items {
		args = append(args, i.args...)
	}
	return args
}
