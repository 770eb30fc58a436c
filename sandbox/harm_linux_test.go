package sandbox_test

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// harmed says what the shell got at that it should not have: the secret, or a
// change outside. It is empty if it got at nothing.
func (w *world) harmed() string {
	if strings.Contains(w.heard.String(), w.secret) {
		return "the secret was read"
	}
	now := w.look()
	for _, path := range slices.Sorted(maps.Keys(w.before)) {
		if now[path] != w.before[path] {
			return fmt.Sprintf("%s was %s, is %s", path, w.before[path], now[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(now)) {
		if w.before[path] == "" {
			return fmt.Sprintf("%s appeared: %s", path, now[path])
		}
	}
	return ""
}

// look describes what must not change.
func (w *world) look() map[string]string {
	seen := make(map[string]string)
	for _, top := range append([]string{w.Out, filepath.Join(w.Home, ".ssh")}, w.guarded...) {
		_ = filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			var st syscall.Stat_t
			if err != nil || syscall.Lstat(path, &st) != nil {
				return nil //nolint:nilerr // That it is gone is seen by its absence.
			}
			var content []byte
			if st.Mode&syscall.S_IFMT == syscall.S_IFREG {
				content, _ = os.ReadFile(path) // Gone is seen below.
			}
			link, _ := os.Readlink(path) // Most are none.
			seen[path] = fmt.Sprintf("%o of %d, %d links, changed %d.%09d, %q%q", st.Mode, st.Uid, st.Nlink, st.Mtim.Sec, st.Mtim.Nsec, content, link)
			return nil
		})
	}
	return seen
}
