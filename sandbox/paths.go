package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// systemDirs are no workspaces, nor what they are links to. What is in them may
// be one, but for what the kernel makes.
var systemDirs = append([]string{
	"/boot", "/dev", "/home", "/media", "/mnt", "/nix", "/proc", "/run", "/srv", "/sys", "/tmp", "/usr/local", "/var", "/var/tmp",
}, topDirs...)

// ownMount says whether the path is one that the kernel makes.
func ownMount(path string) bool {
	return pathWithin("/proc", path) || pathWithin("/sys", path) || pathWithin("/dev", path)
}

// tooWide says why a path without symlinks must not be writable, or "". Files
// are compared besides names, for a bind mount may give the home another name.
func tooWide(path string) (why string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	is := func(other string) bool {
		st, err := os.Stat(other)
		return path == other || err == nil && os.SameFile(info, st)
	}
	if is("/") {
		return "is the root directory: everything would be writable", nil
	}
	for _, home := range homes() {
		if is(home) {
			return "is $HOME: secrets would be writable", nil
		}
		for dir := filepath.Dir(home); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			if is(dir) {
				return "holds $HOME: secrets would be writable", nil
			}
		}
	}
	if ownMount(path) || slices.ContainsFunc(systemDirs, is) {
		return "is a directory of the system", nil
	}
	return "", nil
}

// homes are the home directory by the environment, which may be made up, and by
// the system. There may be none.
func homes() []string {
	var homes []string
	if home, err := os.UserHomeDir(); err == nil {
		homes = append(homes, realPath(filepath.Clean(home)))
	}
	if u, err := user.LookupId(fmt.Sprint(os.Getuid())); err == nil && u.HomeDir != "" {
		homes = append(homes, realPath(filepath.Clean(u.HomeDir)))
	}
	// Services have "/" as home, which is refused anyway.
	return slices.DeleteFunc(homes, func(home string) bool { return home == "/" })
}

// firstLink gives the first symlink on the way from root down to a path that is
// relative to it, or "" if there is none as far as the way goes.
func firstLink(root, path string) (string, error) {
	for _, part := range strings.Split(filepath.ToSlash(path), "/") {
		root = filepath.Join(root, part)
		info, err := os.Lstat(root)
		if isMissing(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return root, nil
		}
	}
	return "", nil
}

// realPath follows symlinks as far as the path is there.
func realPath(path string) string {
	for dir, rest := path, ""; ; dir, rest = filepath.Dir(dir), filepath.Join(filepath.Base(dir), rest) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if dir == filepath.Dir(dir) {
			return path
		}
	}
}

// pathWithin says whether a clean path is dir or below it.
func pathWithin(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// linksOn lists the symlinks that are met on the way to a path, by where they
// are. It ends where the path does.
func linksOn(path string) (links []string, err error) {
	const most = 40 // As Linux has it (path_resolution(7)).
	dir, rest := "/", strings.Split(path, "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		next := filepath.Join(dir, name) // "", "." and ".." mean what they say: dir has no symlinks.
		info, err := os.Lstat(next)
		switch {
		case isMissing(err):
			return links, nil
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink == 0:
			dir = next
			continue
		}
		if links = append(links, next); len(links) > most {
			return nil, fmt.Errorf("%s: %w", path, syscall.ELOOP)
		}
		target, err := os.Readlink(next)
		if err != nil {
			return nil, err
		}
		if filepath.IsAbs(target) {
			dir = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return links, nil
}
