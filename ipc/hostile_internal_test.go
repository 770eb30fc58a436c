package ipc

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/testenv"
)

func hostileDir(t *testing.T) (d *Dir, outside string) {
	t.Helper()
	d, err := NewDir(filepath.Join(t.TempDir(), "d"), 4096, nil)
	require.NoError(t, err)
	t.Cleanup(d.Close)
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
	d.pool.close()
	require.NoError(t, os.RemoveAll(filepath.Join(d.path, "out")))
	require.NoError(t, os.Symlink(outside, filepath.Join(d.path, "out")))
	_, _, err := d.Begin(Call{ID: NewID(), Script: "true", Names: ViaBuiltin}, false)
	assert.ErrorIs(t, err, ErrReplaced)
	assert.Empty(t, listed(t, outside))

	for _, name := range []string{"eval", "inner", "state", "return"} {
		require.NoError(t, os.Remove(filepath.Join(d.path, name)))
		require.NoError(t, os.Symlink(filepath.Join(outside, name), filepath.Join(d.path, name)))
	}
	assert.ErrorIs(t, d.Renew(), ErrReplaced)
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
		_, err := d.Saved("id", "seal") // It must not wait for anybody.
		assert.Error(t, err, name)
	}
}

func TestAMovedCaptureIsTheOneThatWasWritten(t *testing.T) {
	testenv.NeedProc(t)
	d, outside := hostileDir(t)
	secret := filepath.Join(outside, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	o, err := d.pool.outputs(false)
	require.NoError(t, err)
	defer o.Release()
	appendTo(t, o.stdout, []byte("written"))
	require.NoError(t, os.Link(o.stdout.path(), filepath.Join(d.path, "second name")))
	assert.ErrorIs(t, o.Move(1, filepath.Join(outside, "kept")), ErrHeld, "somebody could go on writing")
	assert.Equal(t, []string{"secret"}, listed(t, outside))

	o, err = d.pool.outputs(false)
	require.NoError(t, err)
	defer o.Release()
	appendTo(t, o.stdout, []byte("written"))
	// The command puts a symlink in its place; the file has no name then.
	require.NoError(t, os.Remove(o.stdout.path()))
	require.NoError(t, os.Symlink(secret, o.stdout.path()))
	assert.Error(t, o.Move(1, filepath.Join(outside, "kept")))
	assert.Equal(t, []string{"secret"}, listed(t, outside))

	appendTo(t, o.stderr, []byte("written"))
	require.NoError(t, o.Move(2, filepath.Join(outside, "kept")))
	b, err := os.ReadFile(filepath.Join(outside, "kept"))
	require.NoError(t, err)
	assert.Equal(t, "written", string(b))
}
