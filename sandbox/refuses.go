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
// It is false where it is not known: for what is not shown at all, as a private /tmp or home, /proc, /dev and /run; and for what is shown read-only in a
// directory that the sandbox can write, where somebody may have put a symlink on the way. The zero Policy and Unconfined refuse nothing.
func (p Policy) Refuses(path string) bool {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || hasNUL(path) || p.unconfined != "" {
		return false
	}
	r, err := p.resolver()
	if err != nil {
		return false
	}
	h := host{home: userHome(), etc: []entry{{"/sys", true}}} // What is hidden in /etc cannot be written either.
	if h.programs() != nil {
		return false
	}
	v := mountsOf(r.p, h, place{}).view
	if r.p.FS.Access == Overlay { // It only looks as if it could not be written.
		for i := range v {
			if v[i].at == r.p.FS.Workspace {
				v[i].reach = writable
			}
		}
	}
	at, err := v.leads(path)
	if err != nil || !v.refuses(at) {
		return false
	}
	// What is missing may be there when the sandbox starts.
	return !slices.ContainsFunc(r.absentRW, func(b Bind) bool { return overlaps(b.Dst, at) || overlaps(realPath(b.Dst), at) })
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

// overlaps reports whether one of two paths is the other, or has it.
func overlaps(a, b string) bool { return pathWithin(a, b) || pathWithin(b, a) }

// leads follows the symlinks on the way to a path, as far as it is there. The way is through what cannot be written, so that no other symlink can be put there.
func (v view) leads(path string) (string, error) {
	const most = 40 // As Linux has it (path_resolution(7)).
	at, rest, links := "/", strings.Split(path, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		at = filepath.Join(at, part) // "", "." and ".." mean what they say: at has no symlinks.
		m := v[v.top(at)]
		if m.at != "/" && m.reach != readable {
			return "", syscall.EACCES
		}
		src := rebase(at, m.at, m.src)
		info, err := os.Lstat(src)
		switch {
		case isMissing(err):
			continue
		case err != nil:
			return "", err
		case info.IsDir() || info.Mode().IsRegular():
			continue
		case info.Mode()&fs.ModeSymlink == 0:
			return "", syscall.EINVAL // What is written to a fifo, a socket or a device, somebody reads.
		}
		if links++; links > most {
			return "", syscall.ELOOP
		}
		target, err := os.Readlink(src)
		if err != nil {
			return "", err
		}
		if at = filepath.Dir(at); filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}
