package private_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/private"
)

// The umask is that of the process: no other test of the package may run beside this one.
func TestWhatIsMadeIsTheOwnersWhateverTheUmaskIs(t *testing.T) {
	for _, umask := range []int{0o777, 0o277, 0o177, 0o077, 0} {
		top := t.TempDir()
		path := func(name string) string { return filepath.Join(top, name) }
		root, err := os.OpenRoot(top)
		require.NoError(t, err)
		closed := func(f *os.File, err error) error { return errors.Join(err, f.Close()) }

		old := syscall.Umask(umask)
		errs := []error{
			private.Mkdir(path("dir")),
			private.MkdirAll(path("a/b/c")),
			private.MkdirAll(path("a/b/c")),
			private.MkdirIn(root, "dir in"),
			private.WriteFile(path("file"), []byte("text")),
			private.WriteFile(path("file"), []byte("text")),
			private.Touch(path("touched")),
			private.Touch(path("touched")),
			private.Mkfifo(path("fifo")),
			closed(private.OpenFile(path("opened"), os.O_RDWR|os.O_CREATE|os.O_EXCL)),
			closed(private.OpenIn(root, "opened in", os.O_RDWR|os.O_CREATE|os.O_EXCL)),
			closed(private.CreateTemp(top, "temp-")),
		}
		_, err = private.MkdirTemp(top, "dir-")
		syscall.Umask(old)
		require.NoError(t, errors.Join(append(errs, err, root.Close())...))

		made := 0
		require.NoError(t, filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || path == top {
				return err
			}
			made++
			info, err := entry.Info()
			require.NoError(t, err)
			want := fs.FileMode(0o600)
			if entry.IsDir() {
				want = 0o700
			}
			assert.Equal(t, want, info.Mode().Perm(), "%s under %#o", path, umask)
			return nil
		}))
		assert.Equal(t, 12, made)
		text, err := os.ReadFile(path("file"))
		require.NoError(t, err)
		assert.Equal(t, "text", string(text))
	}
}

func TestWhatIsThereIsNotMadeAgain(t *testing.T) {
	top := t.TempDir()
	dir, file := filepath.Join(top, "dir"), filepath.Join(top, "file")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(file, 0o644))
	require.ErrorIs(t, private.Mkdir(dir), fs.ErrExist)
	require.NoError(t, private.MkdirAll(dir))
	require.Error(t, private.MkdirAll(file))
	require.Error(t, private.MkdirAll(filepath.Join(file, "below")))
	require.NoError(t, private.Touch(file))
	for path, want := range map[string]fs.FileMode{dir: 0o755, file: 0o644} {
		st, err := os.Stat(path)
		require.NoError(t, err)
		assert.Equal(t, want, st.Mode().Perm(), path)
	}
}

// A log that the user has made readable alone, say. Root can write it all the same.
func TestAFileThatIsThereKeepsItsMode(t *testing.T) {
	for _, text := range []string{"", "text"} {
		dir := t.TempDir()
		file := filepath.Join(dir, "file")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, os.Chmod(file, 0o440))
		root, err := os.OpenRoot(dir)
		require.NoError(t, err)
		for _, flag := range []int{os.O_RDONLY | os.O_CREATE, os.O_WRONLY | os.O_CREATE | os.O_TRUNC, os.O_RDWR | os.O_CREATE} {
			for _, open := range []func() (*os.File, error){
				func() (*os.File, error) { return private.OpenFile(file, flag) },
				func() (*os.File, error) { return private.OpenIn(root, "file", flag) },
			} {
				if f, err := open(); err == nil { // Only root may write it.
					require.NoError(t, f.Close())
				} else {
					require.ErrorIs(t, err, fs.ErrPermission)
				}
			}
		}
		if err := private.WriteFile(file, []byte("new")); err != nil {
			require.ErrorIs(t, err, fs.ErrPermission)
		}
		require.NoError(t, private.Touch(file))
		st, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o440), st.Mode().Perm(), "%q", text)
		require.NoError(t, root.Close())
	}
}

// A link to nothing is one to a file that is to be made.
func TestALinkToNothingIsFollowed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("file", filepath.Join(dir, "link")))
	require.NoError(t, private.WriteFile(filepath.Join(dir, "link"), []byte("text")))
	text, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	assert.Equal(t, "text", string(text))
}
