package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// host is what the argv depends on besides the policy. Golden tests make one up.
type host struct {
	root  bool              // the sandbox runs as uid 0
	self  string            // this program's executable
	home  string            // cleaned, symlinks resolved
	links map[string]string // of the top directories: what the symlinks name
	dirs  []string          // of the top directories: those that are directories
	etc   []entry           // root only: what of /etc others may not read
	cover []string          // of /proc: what is there to be covered
	names string            // where /etc/resolv.conf leads, if that is in /run
	// of /proc, root only: what others may not read
	rootOnly []string
}

// entry is a file or a directory.
type entry struct {
	path string
	dir  bool
}

// topDirs are the directories of the system that are shown, where they are
// there. Distributions make symlinks of some.
var topDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store"}

// procCover are the places below /proc by which the kernel is changed. An ordinary
// user can write to none of them anyway; for root see procOfRoot. Bwrap means to cover
// /proc/sys, but does not for root, whom access(2) refuses nothing but this.
var procCover = []string{
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/asound", "/proc/driver", "/proc/mtrr",
	"/proc/dynamic_debug", "/proc/pressure",
}

// procHide is like procCover, but for what must not be read either.
var procHide = []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/latency_stats"}

// lookAtHost gathers the facts for a sandbox of that user.
func lookAtHost(user Credential) (host, error) {
	h := host{root: user.UID == 0}
	h.home = userHome()
	h.self, _ = os.Executable() // Empty: whoever needs it finds that it is not there.
	if path, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && pathWithin("/run", path) {
		h.names = path
		if dir := filepath.Dir(path); dir == "/run/systemd/resolve" {
			h.names = dir // The file is replaced now and then (systemd-resolved(8)). Others have secrets beside it.
		}
	}
	if err := h.topDirectories(); err != nil {
		return host{}, err
	}
	if h.root {
		var err error
		if h.etc, err = secretsOf("/etc"); err != nil {
			return host{}, err
		}
		h.cover, h.rootOnly, err = procOfRoot()
		return h, err
	}
	for _, path := range slices.Concat(procCover, procHide) {
		if _, err := os.Lstat(path); err == nil {
			h.cover = append(h.cover, path)
		}
	}
	return h, nil
}

// topDirectories finds those of topDirs that are there.
func (h *host) topDirectories() error {
	h.links = make(map[string]string)
	for _, dir := range topDirs {
		st, err := os.Lstat(dir)
		switch {
		case err != nil:
		case st.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(dir)
			if err != nil {
				return err
			}
			h.links[dir] = target
		case st.IsDir():
			h.dirs = append(h.dirs, dir)
		}
	}
	return nil
}

// userHome is the home directory by the environment, or else by the password file,
// without symlinks. It is empty if it is not there: there is nothing to hide.
func userHome() string {
	there := func(home string) bool {
		info, err := os.Stat(home)
		return err == nil && info.IsDir()
	}
	if home, err := os.UserHomeDir(); err == nil && there(home) { // The password file takes longer.
		return realPath(filepath.Clean(home))
	}
	for _, home := range homes() {
		if there(home) {
			return home
		}
	}
	return ""
}

// secretsOf lists what of a directory others may not read. Root would see it in
// the sandbox, where it still is the user that owns it. All of /etc is looked at
// for each sandbox: a file may have become a secret since the last.
func secretsOf(dir string) (secrets []entry, err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close() // Read only.
	names, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(names, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	fd := int(f.Fd())
	for _, name := range names {
		if !name.IsDir() && !name.Type().IsRegular() {
			continue // Symlinks, which most are, and which have no mode.
		}
		var st unix.Stat_t
		if unix.Fstatat(fd, name.Name(), &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // Gone meanwhile.
		}
		path := dir + "/" + name.Name()
		switch mode := uint32(st.Mode); {
		case mode&unix.S_IFMT == unix.S_IFREG && mode&0o004 == 0:
			secrets = append(secrets, entry{path, false})
		case mode&unix.S_IFMT == unix.S_IFDIR && mode&0o005 != 0o005:
			secrets = append(secrets, entry{path, true})
		case mode&unix.S_IFMT == unix.S_IFDIR:
			below, err := secretsOf(path)
			if err != nil {
				return nil, err
			}
			secrets = append(secrets, below...)
		}
	}
	return secrets, nil
}

// procOfRoot lists what must not be open to root, who in the sandbox is the kernel's
// root, without capabilities: cover is all at the top of /proc in which something may be
// written, whatever this kernel has there, and hide what others may not read.
func procOfRoot() (cover, hide []string, err error) {
	f, err := os.Open("/proc")
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // Read only.
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, nil, err
	}
	slices.Sort(names)
	for _, name := range names {
		path := "/proc/" + name
		var st unix.Stat_t
		if name[0] <= '9' || unix.Fstatat(int(f.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
			continue // A process.
		}
		switch mode := uint32(st.Mode); {
		case slices.Contains(procHide, path):
			cover = append(cover, path)
		case mode&unix.S_IFMT == unix.S_IFDIR, mode&unix.S_IFMT == unix.S_IFREG && mode&0o004 != 0 && mode&0o222 != 0:
			cover = append(cover, path)
		case mode&unix.S_IFMT == unix.S_IFREG && mode&0o004 == 0:
			hide = append(hide, path)
		}
	}
	return cover, hide, nil
}
