package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Refuses reports whether the policy shows a path, and all below it, read-only: what would write there fails, whoever runs it. The path is one of the sandbox,
// absolute and clean, and need not be there; of any other, and under a policy that does not start, it is false. Symlinks are followed as they are on the host,
// which is asked each time.
//
// It is false where it is not known: for what is not shown at all, as a private /tmp or home, /proc, /dev and /run; for what is shown read-only in a
// directory that the sandbox can write, where somebody may have put a symlink on the way; and for what the sandbox can write by another name. Symlinks below
// the path are not looked at: what follows those may write elsewhere. The zero Policy and Unconfined refuse nothing.
func (p Policy) Refuses(path string) bool {
	r, files, err := p.sees(path)
	if err != nil {
		return false
	}
	at, _, err := files.follow(path, func(at string, m shown) bool {
		if m.reach == readable {
			return !files.writes(rebase(at, m.at, m.src))
		}
		return files.isRoot(m) && (files.holds(at) || files.links[at] != "") // Nothing else is there, and nothing is made.
	})
	if err != nil || !files.refuses(at) {
		return false
	}
	// What is missing may be there when the sandbox starts.
	return !slices.ContainsFunc(r.absentRW, func(b Bind) bool { return overlaps(b.Dst, at) || overlaps(realPath(b.Dst), at) })
}

// Shows reports whether the sandbox has at a path what this machine has there: the same file, or none. The path is as for Refuses. It is false for the private
// /tmp and home, and where it is not known; the zero Policy and Unconfined show nothing. A sandbox in which a directory above a mount was renamed is
// replaced before the next command.
func (p Policy) Shows(path string) bool {
	r, files, err := p.sees(path)
	if err != nil {
		return false
	}
	at, there, err := files.follow(path, func(at string, m shown) bool {
		return m.reach > hidden && m.src == m.at || files.isRoot(m) || files.holds(at)
	})
	if err != nil || there && files.view[files.top(at)].reach == hidden {
		return false
	}
	if slices.ContainsFunc(files.view, func(m shown) bool { return realPath(m.at) != m.at && overlaps(realPath(m.at), at) }) {
		return false // It is mounted where the symlinks lead.
	}
	return !slices.ContainsFunc(slices.Concat(r.absentRO, r.absentRW), func(b Bind) bool { return overlaps(b.Dst, at) || overlaps(realPath(b.Dst), at) })
}

// seen is what is known of the files that a sandbox sees.
type seen struct {
	view
	links map[string]string // of the directories of the system, as in host
}

// sees returns what is needed to answer a question about a path of the sandbox. It fails for what is no such path, and under a policy that does not start.
func (p Policy) sees(path string) (r resolver, files seen, err error) {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || hasNUL(path) || p.unconfined != "" {
		return r, files, syscall.EINVAL
	}
	if r, err = p.resolver(); err != nil {
		return r, files, err
	}
	h := host{home: userHome(), etc: []entry{{"/sys", true}}} // What is hidden in /etc cannot be written either.
	if err := h.topDirectories(); err != nil {
		return r, files, err
	}
	files = seen{mountsOf(r.p, h, place{}).view, h.links}
	if r.p.FS.Access == Overlay { // The workspace takes writes, and throws them away.
		for i := range files.view {
			if files.view[i].at == r.p.FS.Workspace {
				files.view[i].reach = hidden
			}
		}
	}
	return r, files, nil
}

// refuses reports whether a path without symlinks, and all below it, is shown and cannot be written. Mounts are where their symlinks lead, too.
func (v view) refuses(path string) bool {
	if v[v.top(path)].reach != readable {
		return false
	}
	return !slices.ContainsFunc(v[1:], func(m shown) bool {
		return m.reach != readable && (overlaps(m.at, path) || overlaps(realPath(m.at), path))
	})
}

// isRoot reports whether a mount is the root of a sandbox that shows parts of the host: nothing is in it but where others are mounted, and nobody writes there.
func (v view) isRoot(m shown) bool { return m.at == "/" && m.reach == hidden }

// holds reports whether something of the host is mounted below a path.
func (v view) holds(path string) bool {
	return slices.ContainsFunc(v, func(m shown) bool { return m.reach > hidden && m.at != path && pathWithin(path, m.at) })
}

// writes reports whether the sandbox can write a path of the host, by whatever name.
func (v view) writes(src string) bool {
	return slices.ContainsFunc(v, func(m shown) bool { return m.reach == writable && pathWithin(realPath(m.src), src) })
}

// overlaps reports whether one of two paths is the other, or has it.
func overlaps(a, b string) bool { return pathWithin(a, b) || pathWithin(b, a) }

// follow follows the symlinks on the way to a path, as far as it is there, and reports whether it is. Through reports whether a part of the way may be followed.
func (l seen) follow(path string, through func(at string, m shown) bool) (at string, there bool, err error) {
	const most = 40 // As Linux has it (path_resolution(7)).
	at, there = "/", true
	for rest, links := strings.Split(path, "/"), 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		at = filepath.Join(at, part) // "", "." and ".." mean what they say: at has no symlinks.
		m := l.view[l.top(at)]
		if !through(at, m) {
			return "", false, syscall.EACCES
		}
		src := rebase(at, m.at, m.src)
		info, err := os.Lstat(src)
		switch {
		case isMissing(err):
			there = false
			continue
		case err != nil:
			return "", false, err
		case info.IsDir() || info.Mode().IsRegular():
			continue
		case info.Mode()&fs.ModeSymlink == 0:
			return "", false, syscall.EINVAL // What is written to a fifo, a socket or a device, somebody reads.
		}
		if _, shown := l.links[at]; m.reach == hidden && !shown {
			return "", false, syscall.ENOENT
		}
		if links++; links > most {
			return "", false, syscall.ELOOP
		}
		target, err := os.Readlink(src)
		if err != nil {
			return "", false, err
		}
		if at = filepath.Dir(at); filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, there, nil
}
