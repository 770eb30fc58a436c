package private

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A process of the session's user may put a link in the place of a fifo that root has just made.
func TestAModeIsNotChangedThroughALink(t *testing.T) {
	dir := t.TempDir()
	file, link, fifo := filepath.Join(dir, "file"), filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Chmod(file, 0o400))
	require.NoError(t, os.Symlink(file, link))
	require.ErrorIs(t, chmodItself(link, 0o600), syscall.ELOOP)
	require.NoError(t, syscall.Mkfifo(fifo, 0o400))
	require.NoError(t, chmodItself(fifo, 0o600))
	for path, want := range map[string]fs.FileMode{file: 0o400, fifo: 0o600} {
		st, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, want, st.Mode().Perm(), path)
	}
}
