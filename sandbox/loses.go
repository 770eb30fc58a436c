package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Loses reports whether nothing stays of what is written to a path, and below it, under the policy: the write is refused, or what is written goes
// with the sandbox. The path is one of the sandbox, absolute and clean; of any other, and under a policy that does not start, it is false.
//
// Symlinks are followed where the sandbox shows those of the host. In the private /tmp, /var/tmp, /dev/shm and home nobody can look from outside: there it
// is taken for granted that the sandbox has made none, so a symlink or a mount that it makes there is for the caller to find. It is false for those directories
// themselves; for what holds, or is in, a directory that is written on the host; for /proc, /sys, /dev and /run; for a FIFO, a socket or a device; and for names
// that begin with limpet, below which are the files by which the session is spoken to. The zero Policy and Unconfined lose nothing.
func (p Policy) Loses(path string) bool {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || hasNUL(path) || p.unconfined != "" {
		return false
	}
	r, err := p.resolver()
	if err != nil {
		return false
	}
	l := losing{viewOf(r.p), privatePlaces(r.p, userHome()), nil}
	for _, m := range l.view {
		if m.reach == writable {
			l.written = append(l.written, m.at, realPath(m.at))
		}
	}
	for _, b := range r.absentRW { // It may be there when the sandbox starts.
		l.written = append(l.written, b.Dst, realPath(b.Dst))
	}
	at, err := l.leads(path)
	return err == nil && l.loses(path) && l.loses(at)
}

// losing is what is known of where files stay.
type losing struct {
	view    view
	private []string // what is in them goes with the sandbox
	written []string // paths of the sandbox at which files of the host are written
}

// kernels are directories whose files are none, or speak to somebody.
var kernels = []string{"/proc", "/sys", "/dev", "/run", "/var/run"}

// loses says so of a path without symlinks.
func (l *losing) loses(path string) bool {
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "limpet") {
			return false
		}
	}
	if slices.ContainsFunc(l.written, func(dir string) bool { return pathWithin(dir, path) || pathWithin(path, dir) }) || slices.Contains(l.private, path) {
		return false
	}
	return !isKernels(path) && !slices.ContainsFunc(kernels, func(dir string) bool { return pathWithin(path, dir) })
}

// isKernels reports whether a path is in one of the kernels, and no shared memory, which is files.
func isKernels(path string) bool {
	return path != "/dev" && !pathWithin("/dev/shm", path) && slices.ContainsFunc(kernels, func(dir string) bool { return pathWithin(dir, path) })
}

// leads follows the symlinks of the host that the sandbox shows, as far as the path is there.
func (l *losing) leads(path string) (string, error) {
	const most = 40 // As Linux has it (path_resolution(7)).
	at, rest, links := "/", strings.Split(path, "/"), 0
	for len(rest) > 0 {
		part := rest[0]
		rest = rest[1:]
		at = filepath.Join(at, part) // "", "." and ".." mean what they say: at has no symlinks.
		if isKernels(at) {
			return "", syscall.EINVAL // Links there lead elsewhere in the sandbox.
		}
		m := l.view[l.view.top(at)]
		if m.reach == hidden && slices.Contains(l.private, m.at) {
			continue // It was empty.
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
			return "", syscall.EINVAL // Whoever reads it may be outside.
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
