package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// private makes a shared directory one that nobody else can enter.
func makePrivate(path string, owner Credential) error {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return mountError("create it again", "shared directory: %v", err)
	}
	defer dir.Close() // Nothing was written.
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil || st.Uid != owner.UID {
		return mountError("choose a directory of its own", "shared directory %s does not belong to user %d", path, owner.UID)
	}
	if st.Mode&0o7777 != 0o700 {
		if err := dir.Chmod(0o700); err != nil {
			return mountError("", "shared directory: %v", err)
		}
	}
	return nil
}

// make makes a mount point, as bwrap would, but without following a symlink that
// a sandbox has left: one that is in the way is an error. It is owned by the
// user of the sandbox, and stays, for other sandboxes may be mounted on it.
func (p point) make(owner Credential) error {
	dir, err := unix.Open(p.top, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return mountError("", "shared directory %s: %v", p.top, err)
	}
	defer func() { _ = unix.Close(dir) }() // Nothing was done with it.
	isFile := false
	if p.src != "" {
		info, err := os.Stat(p.src)
		if err != nil {
			return mountError("", "%v", err)
		}
		isFile = !info.IsDir()
	}
	parts := strings.Split(p.rel, "/")
	for i, name := range parts {
		path := filepath.Join(p.top, filepath.Join(parts[:i+1]...))
		if isFile && i == len(parts)-1 {
			return mountPointFile(dir, name, path, owner)
		}
		next, err := mountPointDir(dir, name, owner)
		if err != nil {
			return mountError("remove it", "cannot mount something at %s: %v", path, err)
		}
		_ = unix.Close(dir) // As above.
		dir = next
	}
	return nil
}

// mountPointDir makes a directory, if it is not there, and opens it.
func mountPointDir(dir int, name string, owner Credential) (int, error) {
	made := unix.Mkdirat(dir, name, 0o700)
	if made != nil && made != unix.EEXIST {
		return -1, made
	}
	if made == nil {
		if err := restoreMode(dir, name); err != nil {
			return -1, err
		}
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil || made != nil || owner == ourselves() {
		return fd, err
	}
	if err := unix.Fchown(fd, int(owner.UID), int(owner.GID)); err != nil {
		_ = unix.Close(fd) // Nothing was done with it.
		return -1, err
	}
	return fd, nil
}

// restoreMode gives a directory that was just made the rights that the umask has taken from its owner: else it cannot be
// opened. No link is followed that a program has put in its place.
func restoreMode(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd) // Only its mode is changed.
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&0o700 == 0o700 || int(st.Uid) != os.Geteuid() {
		return err
	}
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o700)
}

// mountPointFile makes an empty file, if it is not there.
func mountPointFile(dir int, name, path string, owner Credential) error {
	fd, err := unix.Openat(dir, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err == unix.EEXIST {
		var st unix.Stat_t
		if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
			return mountError("remove it", "cannot mount something at %s: it is not a file", path)
		}
		return nil
	}
	if err != nil {
		return mountError("", "cannot mount something at %s: %v", path, err)
	}
	defer unix.Close(fd) // Nothing was written.
	if owner != ourselves() {
		if err := unix.Fchown(fd, int(owner.UID), int(owner.GID)); err != nil {
			return mountError("", "cannot mount something at %s: %v", path, err)
		}
	}
	return nil
}

// prepare makes what the mounts of a policy need on the host.
func prepare(p Policy, points []point) error {
	for _, dir := range []string{p.FS.HomeDir, p.FS.TmpDir} {
		if dir == "" {
			continue
		}
		if err := makePrivate(dir, p.user()); err != nil {
			return err
		}
	}
	for _, point := range points {
		if err := point.make(p.user()); err != nil {
			return err
		}
	}
	return nil
}

// removeSession removes the mount point of a session directory, which is of no
// use to another sandbox. Those above it are: they stay.
func removeSession(points []point, sessionDir string) {
	for _, p := range points {
		if sessionDir == "" || p.src != sessionDir {
			continue
		}
		dir, rel, err := spot{p.top, p.rel}.parent()
		if err != nil {
			continue
		}
		if rel == p.rel {
			_ = unix.Unlinkat(dir, filepath.Base(rel), unix.AT_REMOVEDIR) // Best effort: it is an empty directory.
		}
		_ = unix.Close(dir) // Nothing was written.
	}
}
