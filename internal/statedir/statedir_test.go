package statedir_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/statedir"
)

func TestTheDefaultIsWhereXDGHasIt(t *testing.T) {
	t.Setenv("HOME", "/home/x")
	for state, want := range map[string]string{
		"/state": "/state/limpet/jobs", "": "/home/x/.local/state/limpet/jobs", "relative": "/home/x/.local/state/limpet/jobs",
	} {
		t.Setenv("XDG_STATE_HOME", state)
		dir, err := statedir.Default("jobs")
		require.NoError(t, err)
		assert.Equal(t, want, dir)
	}
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	_, err := statedir.Default("jobs")
	require.Error(t, err)
}

func TestADirectoryThatOthersCanWriteToIsNotPrivate(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, statedir.Private(dir))
	require.NoError(t, os.Chmod(dir, 0o770))
	require.ErrorContains(t, statedir.Private(dir), "others than this user can write to it")
	require.ErrorIs(t, statedir.Private(filepath.Join(dir, "x")), fs.ErrNotExist)
}

func TestAFileIsReadIfItIsOneAndNotTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, statedir.WriteJSON(path, []int{1, 2}))
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, statedir.FileMode, st.Mode().Perm())
	var list []int
	require.NoError(t, statedir.ReadJSON(path, &list, st.Size()))
	assert.Equal(t, []int{1, 2}, list)
	require.ErrorIs(t, statedir.ReadJSON(path, &list, st.Size()-1), fs.ErrInvalid)
	require.NoError(t, statedir.Write(path, []byte("{")))
	require.ErrorIs(t, statedir.ReadJSON(path, &list, 10), fs.ErrInvalid)
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, statedir.ReadJSON(path, &list, 10), fs.ErrNotExist)
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	_, err = statedir.Read(path, 10)
	require.ErrorIs(t, err, fs.ErrInvalid, "it waits for nobody")
}

func TestTheEndOfAFileIsReadIfItIsTooLarge(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, statedir.Write(path, []byte("0123456789")))
	for most, want := range map[int64]string{0: "", 3: "789", 10: "0123456789", 11: "0123456789"} {
		b, skipped, err := statedir.Tail(path, most)
		require.NoError(t, err)
		assert.Equal(t, want, string(b))
		assert.EqualValues(t, 10-len(want), skipped)
	}
	_, _, err := statedir.Tail(path+"x", 3)
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = statedir.Tail(filepath.Dir(path), 3)
	require.ErrorIs(t, err, fs.ErrInvalid)
}

// Whoever could put a link there would have the program read what only it can.
func TestNoSymbolicLinkIsFollowed(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, statedir.WriteJSON(filepath.Join(dir, "file"), 1))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("file", link))
	_, err := statedir.Read(link, 10)
	require.ErrorIs(t, err, fs.ErrInvalid)
	require.ErrorContains(t, err, "symbolic link")
	_, _, err = statedir.Tail(link, 10)
	require.ErrorIs(t, err, fs.ErrInvalid)
	var n int
	require.ErrorIs(t, statedir.ReadJSON(link, &n, 10), fs.ErrInvalid)
	require.NoError(t, os.Symlink(dir, filepath.Join(dir, "here")))
	require.NoError(t, statedir.ReadJSON(filepath.Join(dir, "here", "file"), &n, 10), "the directory may be elsewhere")
}

func TestALockIsWaitedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := statedir.Lock(t.Context(), path)
	require.NoError(t, err)
	over := errors.New("over")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(over)
	_, err = statedir.Lock(ctx, path)
	require.ErrorIs(t, err, over)
	got := make(chan error, 1)
	go func() {
		again, err := statedir.Lock(t.Context(), path)
		if err == nil {
			again()
		}
		got <- err
	}()
	unlock()
	require.NoError(t, <-got)
	_, err = statedir.Lock(t.Context(), filepath.Join(path, "below"))
	require.ErrorIs(t, err, syscall.ENOTDIR)
}
