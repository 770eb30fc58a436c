package rundir_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/rundir"
)

func mkdirs(t *testing.T, path string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(path, 0o700))
}

func TestRemoveTakesEverything(t *testing.T) {
	for name, fill := range map[string]func(dir string){
		"nothing": func(string) {},
		"files, and a directory with the name that one is lifted to": func(dir string) {
			mkdirs(t, filepath.Join(dir, "a/1/x"))
			mkdirs(t, filepath.Join(dir, "1/1/1"))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "1/1/2"), nil, 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "2"), nil, 0o600))
		},
		"directories without permissions": func(dir string) {
			for _, name := range []string{"a/b/c", "a/b", "a"} {
				mkdirs(t, filepath.Join(dir, "a/b/c/d"))
				require.NoError(t, os.Chmod(filepath.Join(dir, name), 0))
			}
			require.NoError(t, os.Chmod(dir, 0))
		},
		"pipes": func(dir string) { require.NoError(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0)) },
		"a file in its place": func(dir string) {
			require.NoError(t, os.Remove(dir))
			require.NoError(t, os.WriteFile(dir, nil, 0o600))
		},
		"it is not there": func(dir string) { require.NoError(t, os.Remove(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "d")
			mkdirs(t, dir)
			fill(dir)
			require.NoError(t, rundir.Remove(dir))
			assert.NoFileExists(t, dir)
			assert.NoDirExists(t, dir)
		})
	}
}

func TestRemoveFollowsNoSymlink(t *testing.T) {
	dir, outside := filepath.Join(t.TempDir(), "d"), t.TempDir()
	mkdirs(t, filepath.Join(dir, "a/b"))
	mkdirs(t, filepath.Join(outside, "kept"))
	for _, at := range []string{"x", "a/x", "a/b/x"} {
		require.NoError(t, os.Symlink(outside, filepath.Join(dir, at)))
	}
	require.NoError(t, rundir.Remove(dir))
	assert.NoDirExists(t, dir)
	assert.DirExists(t, filepath.Join(outside, "kept"))

	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(outside, link))
	require.NoError(t, rundir.Remove(link))
	assert.NoFileExists(t, link)
	assert.DirExists(t, filepath.Join(outside, "kept"))
	assert.DirExists(t, filepath.Join(outside, "kept"))
}

// os.RemoveAll has a descriptor open for each level.
func TestRemoveNeedsFewDescriptorsHoweverDeepItIs(t *testing.T) {
	const levels = 600
	dir := filepath.Join(t.TempDir(), "d")
	mkdirs(t, dir)
	at, err := os.OpenRoot(dir)
	require.NoError(t, err)
	for range levels {
		require.NoError(t, at.Mkdir("d", 0o700))
		require.NoError(t, at.WriteFile("f", nil, 0o600))
		below, err := at.OpenRoot("d")
		require.NoError(t, err)
		require.NoError(t, at.Close())
		at = below
	}
	require.NoError(t, at.Close())
	var before unix.Rlimit
	require.NoError(t, unix.Getrlimit(unix.RLIMIT_NOFILE, &before))
	few := before
	few.Cur = 100
	require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &few))
	t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_NOFILE, &before)) })
	require.NoError(t, rundir.Remove(dir))
	assert.NoDirExists(t, dir)
}
