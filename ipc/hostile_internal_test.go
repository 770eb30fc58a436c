package ipc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/script"
)

func hostileDir(t *testing.T) (d *dir, outside string) {
	t.Helper()
	d, err := newDir(filepath.Join(t.TempDir(), "d"), 4096, nil)
	require.NoError(t, err)
	t.Cleanup(d.close)
	return d, t.TempDir()
}

func listed(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A command can do with the directory what it likes. In a sandbox the paths that
// it puts there mean something else than they do here.
func TestNothingIsMadeOutsideByASymlinkThatACommandMade(t *testing.T) {
	d, outside := hostileDir(t)
	d.pool.Clear()
	require.NoError(t, os.RemoveAll(filepath.Join(d.path, "out")))
	require.NoError(t, os.Symlink(outside, filepath.Join(d.path, "out")))
	_, err := (&Exchange{dir: d}).Begin(Call{ID: environ.NewID(), Script: "true", Names: script.ViaBuiltin}, false)
	assert.ErrorIs(t, err, ErrReplaced)
	assert.Empty(t, listed(t, outside))

	for _, name := range []string{"eval", "inner", "state", "return"} {
		require.NoError(t, os.Remove(filepath.Join(d.path, name)))
		require.NoError(t, os.Symlink(filepath.Join(outside, name), filepath.Join(d.path, name)))
	}
	assert.ErrorIs(t, d.renew(), ErrReplaced)
	assert.Empty(t, listed(t, outside))
}

func TestNothingIsReadThatACommandPutInAFilesPlace(t *testing.T) {
	d, outside := hostileDir(t)
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	state := filepath.Join(d.path, stateName)
	for name, plant := range map[string]func() error{
		"a symlink":   func() error { return os.Symlink(secret, state) },
		"a fifo":      func() error { return unix.Mkfifo(state, 0o600) },
		"a directory": func() error { return os.Mkdir(state, 0o700) },
		"a sparse terabyte": func() error {
			f, err := os.Create(state)
			if err != nil {
				return err
			}
			defer f.Close() // What counts is its size.
			return f.Truncate(1 << 40)
		},
	} {
		require.NoError(t, os.Remove(state))
		require.NoError(t, plant(), name)
		_, err := d.takeState(stateName, "id", "seal") // It must not wait for anybody.
		assert.Error(t, err, name)
	}
}
