//go:build !linux

package rundir

import (
	"io/fs"
	"os"
)

// Default returns $XDG_RUNTIME_DIR, or the temp directory for what other users shall
// pass.
func Default(passable bool) string {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" && !passable {
		return dir
	}
	return os.TempDir()
}

// ownedByUs relies on the mode: who else could have made it 0700 for us?
func ownedByUs(st fs.FileInfo) bool { return st.Mode().Perm() == 0o700 }
