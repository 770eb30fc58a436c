package approve

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/approval"
)

// systemDirs have what the system's packages install. Root can write everywhere: of its files those elsewhere, as in a home or a workspace, are not trusted.
var systemDirs = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr/bin", "/usr/sbin", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/share", "/usr/games",
	"/usr/local/bin", "/usr/local/sbin", "/usr/local/lib", "/usr/local/libexec", "/usr/local/go", "/etc/alternatives", "/nix/store", "/gnu/store", "/run/current-system", "/run/wrappers", "/snap",
}

// Directory reports, for approval.Options, whether there is a directory at a path that this user may enter.
func Directory(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && unix.Faccessat(unix.AT_FDCWD, path, unix.X_OK, unix.AT_EACCESS) == nil
}

// mostLinks bounds the symbolic links of a path, as Linux does.
const mostLinks = 40

// File says, for approval.Options, which file a path leads to, and who besides root can replace it: by the file itself, by a directory on the
// way, or by a symbolic link.
func File(path string) approval.File { return file(path, 0) }

// file is File. Interpreted is how many scripts the path is the interpreter of, one of the other.
func file(path string, interpreted int) approval.File {
	f := follow(path)
	if f.Path == "" {
		return f
	}
	var st, kernel unix.Stat_t
	err := unix.Stat(path, &kernel)
	if err != nil && unix.Lstat(path, &st) != nil {
		return approval.File{} // As behind a file that is no directory.
	}
	if errors.Join(err, unix.Stat(f.Path, &st)) != nil || st.Dev != kernel.Dev || st.Ino != kernel.Ino {
		f.Why = cmp.Or(f.Why, "which may be another file next")
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || unix.Faccessat(unix.AT_FDCWD, f.Path, unix.X_OK, unix.AT_EACCESS) != nil {
		if f.Why == "" || st.Mode&unix.S_IFMT == unix.S_IFDIR {
			return approval.File{} // A shell goes on to the next directory of PATH.
		} // Else it may be made to run.
	}
	f.SetUID = st.Mode&unix.S_ISUID != 0 && st.Uid == 0
	sec, nsec := st.Ctim.Unix()
	f.State = fmt.Sprintf("%d-%d-%d.%09d", st.Ino, st.Size, sec, nsec) // Two files that change places keep the time of their last change.
	if st.Mode&unix.S_IFMT == unix.S_IFREG {
		content(&f, st, interpreted)
	}
	return f
}

// follow follows a path from the root on, and notes the first thing that somebody else than root can write. A path that leads nowhere is empty, but
// for a dead link, which may lead somewhere next.
func follow(path string) approval.File {
	f := approval.File{Path: "/"}
	var root unix.Stat_t
	if unix.Lstat("/", &root) != nil {
		return approval.File{}
	}
	f.Why = writable("/", root)
	rest, links, linked := strings.Split(path[1:], "/"), 0, false
	for len(rest) > 0 {
		part := rest[0]
		if rest = rest[1:]; part == "" || part == "." {
			continue
		} else if part == ".." {
			f.Path = filepath.Dir(f.Path)
			continue
		}
		at := filepath.Join(f.Path, part)
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			if linked && errors.Is(err, unix.ENOENT) {
				return approval.File{Path: at, Why: "where there is nothing yet"}
			}
			return approval.File{}
		}
		if f.Why == "" {
			f.Why = writable(at, st)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFLNK {
			f.Path = at
			continue
		}
		if f.Why == "" && os.Geteuid() == 0 && !inSystem(at) {
			f.Why = byRoot
		}
		linked = linked || len(rest) == 0
		target, err := os.Readlink(at)
		if links++; err != nil || links > mostLinks {
			return approval.File{}
		}
		if filepath.IsAbs(target) {
			f.Path = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	if f.Why == "" && os.Geteuid() == 0 && !inSystem(f.Path) {
		f.Why = byRoot
	}
	return f
}

// byRoot is why a file is not trusted although it belongs to root, where limpet is root.
const byRoot = "which is not in a directory of the system: as root, scripts can write everywhere"

func inSystem(path string) bool {
	return slices.ContainsFunc(systemDirs, func(dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") })
}

// writable says who besides root can write a file or a directory, or point a symbolic link elsewhere; empty: nobody can. An access list shows in the
// bits of the group (acl(5)). In a directory with the sticky bit, which /nix/store is, a group cannot replace what belongs to root.
func writable(path string, st unix.Stat_t) string {
	who, kind := "", st.Mode&unix.S_IFMT
	sticky := kind == unix.S_IFDIR && st.Mode&unix.S_ISVTX != 0
	switch {
	case st.Uid != 0 && int(st.Uid) == os.Geteuid():
		who = "this user"
	case st.Uid != 0:
		who = fmt.Sprint("the user ", st.Uid)
	case kind == unix.S_IFLNK:
	case st.Mode&0o002 != 0:
		who = "everybody"
	case st.Mode&0o020 != 0 && !sticky:
		who = fmt.Sprint("the group ", st.Gid)
	}
	switch {
	case who == "":
		return ""
	case kind == unix.S_IFREG:
		return "which " + who + " can write"
	}
	return who + " can write " + path
}

// PathOf is the PATH that a shell begins with which has an environment, for approval.Options; nil is the environment of limpet.
func PathOf(env []string) string {
	if env == nil {
		env = os.Environ()
	}
	path := bashPath
	for _, entry := range env {
		if value, is := strings.CutPrefix(entry, "PATH="); is {
			path = cmp.Or(value, ".") // Of an empty one, bash takes the directory that it is in.
		}
	}
	return path
}

// bashPath is the PATH of a bash that begins without one, where nobody has built it with another.
const bashPath = "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin:."

// trusted is the file of a program in the PATH of an environment, if that file is trusted.
func trusted(env []string, program string) (string, error) {
	for dir := range strings.SplitSeq(PathOf(env), ":") {
		if !filepath.IsAbs(dir) {
			return "", fmt.Errorf("PATH has a directory that is not absolute before that of %s", program)
		}
		at := dir + "/" + program // Not cleaned: behind a symbolic link, ".." is not what it looks like.
		switch f := File(at); {
		case f.Path == "":
		case f.Why != "":
			return "", fmt.Errorf("%s is %s, %s", program, at, f.Why)
		default:
			return at, nil
		}
	}
	return "", fmt.Errorf("there is no %s in PATH", program)
}
