package approve

import (
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// File reports, for approval.Options, whether there is something at an absolute path, and whether nobody but root can replace it. For root
// itself that is so in the directories of the system alone.
func File(path string) (exists, safe bool) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return unix.Lstat(path, &st) == nil, false // A link that leads nowhere may lead somewhere next.
	}
	if os.Geteuid() == 0 {
		return true, slices.Contains([]string{"/bin", "/usr/bin", "/sbin", "/usr/sbin", "/usr/local/bin"}, filepath.Dir(path))
	}
	real, err := filepath.EvalSymlinks(path)
	return true, err == nil && rooted(real) && rooted(path)
}

// rooted reports whether a file, and each directory that leads to it, belongs to root, and nobody else may write there.
func rooted(path string) bool {
	for ; ; path = filepath.Dir(path) {
		var st unix.Stat_t
		if unix.Lstat(path, &st) != nil || st.Uid != 0 {
			return false
		}
		if link := st.Mode&unix.S_IFMT == unix.S_IFLNK; !link && st.Mode&0o022 != 0 {
			return false
		}
		if path == "/" {
			return true
		}
	}
}
