package ipc

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/files"
)

func TestFilesAreTheOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	owner := &files.Owner{UID: 12345, GID: 12346}
	d, err := newDir(filepath.Join(t.TempDir(), "d"), 4096, owner)
	require.NoError(t, err)
	defer d.close()
	belong := func() {
		t.Helper()
		seen := 0
		require.NoError(t, filepath.WalkDir(d.path, func(path string, entry fs.DirEntry, err error) error {
			require.NoError(t, err)
			info, err := entry.Info()
			require.NoError(t, err)
			st := info.Sys().(*syscall.Stat_t)
			seen++
			if filepath.Base(filepath.Dir(path)) == "out" { // Ours to have a lease on, the owner's to write to.
				assert.Equal(t, files.Owner{}, files.Owner{UID: st.Uid, GID: st.Gid}, path)
				assert.EqualValues(t, 0o666, info.Mode().Perm(), path)
				return nil
			}
			assert.Equal(t, *owner, files.Owner{UID: st.Uid, GID: st.Gid}, path)
			assert.Zero(t, info.Mode().Perm()&0o077, path)
			return nil
		}))
		assert.GreaterOrEqual(t, seen, 11)
	}
	run, err := (&Exchange{dir: d}).Begin(Call{ID: environ.NewID(), Script: "true"}, false)
	require.NoError(t, err)
	require.NoError(t, d.renameState())
	belong()

	kept := filepath.Join(t.TempDir(), "kept")
	require.NoError(t, run.Move(1, kept))
	info, err := os.Stat(kept)
	require.NoError(t, err)
	assert.EqualValues(t, 0, info.Sys().(*syscall.Stat_t).Uid, "limpet keeps it")
	assert.EqualValues(t, 0o600, info.Mode().Perm())
	run.Release()

	require.NoError(t, os.RemoveAll(d.path))
	require.NoError(t, d.renew())
	run, err = (&Exchange{dir: d}).Begin(Call{ID: environ.NewID(), Script: "true"}, false)
	require.NoError(t, err)
	belong()
	run.Release()
}

// Who can write the directory puts a link to somebody else's file where limpet is
// about to make one of its own: that file must not be given away.
func TestNothingElseIsGivenAway(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	owner := &files.Owner{UID: 12345, GID: 12346}
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, nil, 0o600))
	d, err := newDir(filepath.Join(dir, "d"), 4096, owner)
	require.NoError(t, err)
	defer d.close()
	for _, name := range []string{"eval", "state", "out", "inner"} {
		for _, link := range []func(string, string) error{os.Link, os.Symlink} {
			require.NoError(t, os.RemoveAll(filepath.Join(d.path, name)))
			require.NoError(t, link(secret, filepath.Join(d.path, name)))
			_ = d.renew() // It may refuse.
			info, err := os.Stat(secret)
			require.NoError(t, err)
			assert.EqualValues(t, 0, info.Sys().(*syscall.Stat_t).Uid, name)
		}
	}
}
