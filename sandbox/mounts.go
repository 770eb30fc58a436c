package sandbox

import (
	"cmp"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mounts is what bwrap is told to mount, and what is seen by it then. Narrow
// compares the same list that bwrap gets.
type mounts struct {
	items  []item
	view   view
	points []point // to be made
}

// point is a mount point in a directory that sandboxes share: bwrap must find it,
// for it would follow a symlink to make it (CVE-2026-87766).
type point struct {
	top, rel string // the shared directory of the host, and the way down
	src      string // what is mounted on it; empty: a directory
}

// place is where a process starts, and the files that it needs besides.
type place struct {
	dir        string // its working directory
	sessionDir string // by which it speaks with limpet; may be empty
}

// mountsOf makes the list for a policy that is absolute or resolved. It looks
// at nothing but its own arguments. Order matters: parents come before
// children, what is later covers what is earlier.
func mountsOf(p Policy, h host, at place) *mounts {
	m := &mounts{view: view{{"/", "/", hidden, "FS.Root"}}}
	m.system(p, h)
	m.devices(p, h)
	m.hide("nothing of what runs on the host", "FS.Root", "/run", "--perms", "0755", "--tmpfs", "/run")
	if p.Net.Mode == HostNet && h.names != "" {
		m.readOnly("what /etc/resolv.conf leads to", "Net.Mode", h.names, h.names)
	}
	if p.Net.Mode == DomainsNet {
		m.add("opens the port of the proxy, and becomes the program", "--ro-bind", h.self, helperPath)
	}
	m.temporary(p, h)
	m.workspace(p)
	for _, b := range p.FS.ExtraRO {
		m.readOnly("ExtraRO", "FS.ExtraRO", b.Src, b.Dst)
	}
	for _, b := range p.FS.ExtraRW {
		m.writable("ExtraRW", "FS.ExtraRW", b.Src, b.Dst)
	}
	for _, g := range p.guards {
		if g.scanned || !pathWithin(p.FS.Workspace, g.root) {
			m.guard(g)
		}
	}
	for _, e := range p.masks {
		m.mask(e)
	}
	if at.sessionDir != "" {
		m.writable("the files by which the shell is spoken to", "", at.sessionDir, at.sessionDir)
	}
	return m
}

// add is for what mounts nothing.
func (m *mounts) add(why string, args ...string) {
	m.items = append(m.items, item{why, args})
}

func (m *mounts) readOnly(why, field, src, at string) {
	m.point(at, src)
	m.mount(why, shown{at, src, readable, field}, "--ro-bind", src, at)
}

func (m *mounts) writable(why, field, src, at string) {
	m.point(at, src)
	m.mount(why, shown{at, src, writable, field}, "--bind", src, at)
}

// hide is for mounts that show nothing of the host.
func (m *mounts) hide(why, field, at string, args ...string) {
	m.point(at, "")
	m.mount(why, shown{at, at, hidden, field}, args...)
}

// mount adds a mount. The directories above it, as far as they can be written,
// are mounted on themselves first: what is a mount point cannot be renamed, and
// so not be put out of the way with what is in it. If something was mounted in
// one of them before, the directory is mounted on itself already.
func (m *mounts) mount(why string, s shown, args ...string) {
	if top := m.view[m.view.top(s.at)]; top.reach == writable {
		for _, dir := range between(top.at, s.at) {
			src := rebase(dir, top.at, top.src)
			m.view = append(m.view, shown{dir, src, writable, top.field})
			m.add("cannot be renamed, for what it holds", "--bind", src, dir)
		}
	}
	m.view = append(m.view, s)
	m.add(why, args...)
}

// point notes a mount in a shared directory.
func (m *mounts) point(at, src string) {
	top := m.view[m.view.top(at)]
	if top.field != homeDir && top.field != tmpDir || top.at == at {
		return
	}
	// Top may be a part of the shared directory, mounted on itself.
	shared := m.view[slices.IndexFunc(m.view, func(s shown) bool { return s.field == top.field })].src
	m.points = append(m.points, point{shared, strings.TrimPrefix(rebase(at, top.at, top.src), shared+"/"), src})
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

// system shows the host's programs.
func (m *mounts) system(p Policy, h host) {
	if p.FS.Root == All {
		m.readOnly("everything, read-only", "FS.Root", "/", "/")
	} else {
		for _, dir := range topDirs {
			if target, ok := h.links[dir]; ok {
				m.add("as on the host", "--symlink", target, dir)
			} else if slices.Contains(h.dirs, dir) {
				m.readOnly("the system's programs and settings", "FS.Root", dir, dir)
			}
		}
		m.add("directories that programs expect", "--dir", "/var", "--symlink", "../run", "/var/run", "--dir", "/srv", "--dir", "/mnt")
	}
	for _, e := range h.etc {
		m.hide("not for everybody to read", "FS.Root", e.path, mask(e)...)
	}
}

// bwrapProc is the directory of the first process, which is bwrap, and lives as long as
// the sandbox does.
const bwrapProc = "/proc/1"

// devices are /dev and /proc, less what tells about the host or changes it.
func (m *mounts) devices(p Policy, h host) {
	m.hide("a few devices, none of the host's", "FS.Root", "/dev", "--dev", "/dev")
	m.hide("shared memory of its own", "FS.Root", "/dev/shm", tmpfs("/dev/shm", "1777", size(p.FS.ShmSize, defaultShm))...)
	m.add("its mount points are made", "--remount-ro", "/dev")
	if p.Proc.NestedWeak {
		m.hide("no processes: NestedWeak", "FS.Root", "/proc", mask(entry{"/proc", true})...)
		return
	}
	m.hide("its own processes", "FS.Root", "/proc", "--proc", "/proc")
	m.hide("but for bwrap, whose memory and program are not the sandbox's", "FS.Root", bwrapProc, mask(entry{bwrapProc, true})...)
	for _, path := range h.cover {
		if slices.Contains(procHide, path) {
			m.add("tells about the host", "--ro-bind", "/dev/null", path)
		} else {
			m.add("changes the kernel where it can be written", "--ro-bind", path, path)
		}
	}
	for _, path := range h.rootOnly {
		m.add("for root alone to read", "--ro-bind", "/dev/null", path)
	}
}

// The fields of what sandboxes share.
const (
	homeDir = "FS.HomeDir"
	tmpDir  = "FS.TmpDir"
)

// privatePlaces are those whose files go with the sandbox.
func privatePlaces(p Policy, home string) []string {
	var places []string
	if p.FS.Tmp != SharedTmp {
		places = append(places, "/tmp")
	}
	places = append(places, "/var/tmp", "/dev/shm")
	if p.FS.Home == PrivateHome && home != "" {
		places = append(places, home)
	}
	if p.FS.Access == Overlay {
		places = append(places, p.FS.Workspace)
	}
	return places
}

// temporary is /tmp and the home directory.
func (m *mounts) temporary(p Policy, h host) {
	if p.FS.Tmp == SharedTmp {
		m.writable("temporary files, for all sandboxes of one agent", tmpDir, p.FS.TmpDir, "/tmp")
	} else {
		m.hide("temporary files that go with the session", "FS.Tmp", "/tmp", tmpfs("/tmp", "1777", size(p.FS.TmpSize, defaultTmp))...)
	}
	m.hide("temporary files that go with the session", "FS.Tmp", "/var/tmp", tmpfs("/var/tmp", "1777", varTmp)...)
	if h.home == "" {
		return
	}
	switch p.FS.Home {
	case PrivateHome:
		m.hide("an empty home that goes with the session", "FS.Home", h.home, tmpfs(h.home, "0700", size(p.FS.HomeSize, defaultHome))...)
	case ReadOnlyHome:
		m.readOnly("the home directory, read-only", "FS.Home", h.home, h.home)
	case SharedHome:
		m.writable("a home for all sandboxes of one agent", homeDir, p.FS.HomeDir, h.home)
	}
}

// workspace shows the workspace, and what in it is read-only.
func (m *mounts) workspace(p Policy) {
	w, field := p.FS.Workspace, "FS.Workspace"
	switch p.FS.Access {
	case ReadWrite:
		m.writable("the workspace", field, w, w)
	case ReadOnlyAccess:
		m.readOnly("the workspace, read-only", field, w, w)
	case Overlay:
		m.mount("the workspace; what is written is thrown away", shown{w, w, readable, field}, "--overlay-src", w, "--tmp-overlay", w)
	}
	for _, g := range p.guards {
		if !g.scanned && pathWithin(w, g.root) {
			m.guard(g)
		}
	}
}

// names are the paths of the sandbox at which a path of the host can be reached
// that way, or better.
func (m *mounts) names(path string, least reach) []string {
	var names []string
	for i, s := range m.view {
		if s.reach >= least && pathWithin(s.src, path) {
			if at := rebase(path, s.src, s.at); m.view.top(at) == i {
				names = append(names, at)
			}
		}
	}
	return names
}

// guard makes a guard hold wherever what it guards can be written.
func (m *mounts) guard(g guard) {
	for _, name := range m.names(g.root, writable) {
		for _, part := range g.parts {
			src, at := filepath.Join(g.root, part.rel), filepath.Join(name, part.rel)
			if part.writable {
				m.writable("cannot be renamed, for what it holds", "FS.Git", src, at)
			} else {
				m.readOnly(cmp.Or(g.why, whyProtected(src)), "FS.Protect", src, at)
			}
		}
	}
}

// mask hides a file or directory by all of its names. What is in another mask
// has none any more.
func (m *mounts) mask(e entry) {
	for _, at := range m.names(e.path, readable) {
		m.mount("Mask", shown{at, e.path, hidden, "FS.Mask"}, mask(entry{at, e.dir})...)
	}
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
