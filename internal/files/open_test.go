package files_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/files"
)

func TestOpenRegularOpensWhatHasTheNameAlone(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	require.NoError(t, err)
	defer root.Close() // Read only.
	require.NoError(t, root.WriteFile("file", []byte("kept"), 0o600))
	require.NoError(t, root.Symlink("file", "link"))
	require.NoError(t, root.Symlink("nothing", "dangling"))
	require.NoError(t, root.Symlink("/dev/null", "outside"))
	require.NoError(t, root.Mkdir("dir", 0o700))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	for _, name := range []string{"link", "dangling", "outside", "dir", "fifo"} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_APPEND} {
			_, err := files.OpenRegular(root, name, flag)
			require.ErrorIs(t, err, fs.ErrInvalid, name)
		}
	}
	_, err = files.OpenRegular(root, "none", os.O_RDWR)
	require.ErrorIs(t, err, fs.ErrNotExist)

	f, err := files.OpenRegular(root, "file", os.O_RDONLY)
	require.NoError(t, err)
	b, err := io.ReadAll(f)
	require.NoError(t, errors.Join(err, f.Close()))
	assert.Equal(t, "kept", string(b))
	f, err = files.OpenRegular(root, "file", os.O_WRONLY|os.O_TRUNC)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	st, err := root.Stat("file")
	require.NoError(t, err)
	assert.Zero(t, st.Size())
}
