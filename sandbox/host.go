package sandbox

import (
	"os"
	"path/filepath"
	"slices"
)

// host is what the argv depends on besides the policy. Golden tests make one up.
type host struct {
	root  bool              // we are uid 0
	home  string            // cleaned, symlinks resolved
	links map[string]string // of the top directories: what the symlinks name
	dirs  []string          // of the top directories: those that are directories
	etc   []entry           // root only: what of /etc others may not read
	cover []string          // of /proc: what is there to be covered
}

// entry is a file or a directory.
type entry struct {
	path string
	dir  bool
}

// topDirs are the directories of the system that are shown, where they are
// there. Distributions make symlinks of some.
var topDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix/store"}

// procCover are the places below /proc by which root could change the kernel,
// and those that tell about other users. Bwrap means to cover /proc/sys, but
// does not for root, whom access(2) refuses nothing but this.
var procCover = []string{
	"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs", "/proc/acpi", "/proc/scsi", "/proc/asound", "/proc/driver", "/proc/mtrr",
}

// procHide is like procCover, but for what must not be read either.
var procHide = []string{"/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/latency_stats"}

// lookAtHost gathers the facts.
func lookAtHost() (host, error) {
	h := host{root: os.Geteuid() == 0, links: make(map[string]string)}
	home, err := os.UserHomeDir()
	if err == nil {
		h.home, err = filepath.EvalSymlinks(home)
	}
	if err != nil {
		h.home = "" // Nobody's: there is nothing to hide, and HOME is unset in the sandbox too.
	}
	for _, dir := range topDirs {
		st, err := os.Lstat(dir)
		switch {
		case err != nil:
		case st.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(dir)
			if err != nil {
				return host{}, err
			}
			h.links[dir] = target
		case st.IsDir():
			h.dirs = append(h.dirs, dir)
		}
	}
	if h.root {
		if h.etc, err = secretsOf("/etc"); err != nil {
			return host{}, err
		}
	}
	for _, path := range slices.Concat(procCover, procHide) {
		if _, err := os.Lstat(path); err == nil {
			h.cover = append(h.cover, path)
		}
	}
	return h, nil
}

// secretsOf lists what of a directory others may not read. Root would see it in
// the sandbox, where it still is the user that owns it.
func secretsOf(dir string) (secrets []entry, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // Gone meanwhile.
		}
		path := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir() && info.Mode().Perm()&0o005 != 0o005:
			secrets = append(secrets, entry{path, true})
		case e.IsDir():
			below, err := secretsOf(path)
			if err != nil {
				return nil, err
			}
			secrets = append(secrets, below...)
		case info.Mode().IsRegular() && info.Mode().Perm()&0o004 == 0:
			secrets = append(secrets, entry{path, false})
		}
	}
	return secrets, nil
}
