package testenv

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Allocated is how many bytes of disk the files below dir take: blocks, not
// sizes, since the middle of a long output is given back. A file that goes away
// meanwhile counts nothing.
func Allocated(dir string) int64 {
	var sum int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // It is gone.
		}
		if info, err := entry.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				sum += int64(st.Blocks) * 512
			}
		}
		return nil
	})
	return sum
}

// LetPass lets everybody pass through the directory, and through those above it that
// only its owner could.
func LetPass(t testing.TB, dir string) {
	t.Helper()
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm()&0o001 == 0 {
			err = os.Chmod(dir, info.Mode()|0o011)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TempDir is t.TempDir without symbolic links in its name, so that it compares
// equal to what bash calls it.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
