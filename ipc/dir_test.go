//go:build linux

package ipc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestDirIsPrivateAndGoesWithClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d, err := newDir(path, 4096, nil)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(path, func(p string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, p)
		return nil
	}))
	d.close()
	d.close()
	assert.NoDirExists(t, path)
}

func makeDir(t *testing.T) (d *dir, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "base", "d")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	d, err := newDir(path, 4096, nil)
	require.NoError(t, err)
	t.Cleanup(d.close)
	return d, path
}

func TestRenewRecreatesWhatWasDeleted(t *testing.T) {
	for _, gone := range []string{"..", ".", "eval", "inner", "return", "state", "exit", "before", "out"} {
		t.Run(gone, func(t *testing.T) {
			d, path := makeDir(t)
			assert.Equal(t, none, d.damage())
			for range 2 {
				require.NoError(t, os.RemoveAll(filepath.Join(path, gone)))
				assert.Equal(t, missing, d.damage())
				require.NoError(t, d.renew())
				assert.Equal(t, none, d.damage())
				run, err := (&Exchange{dir: d}).Begin(Call{ID: "x", Script: "true", Names: script.ViaBuiltin}, false)
				require.NoError(t, err)
				run.Release()
			}
		})
	}
}

// Bash goes on with the record that it has open; it only raises no events.
func TestARecordWithoutANameIsWrittenAllTheSame(t *testing.T) {
	for _, gone := range []string{"status", "status/record"} {
		for _, instead := range []string{"", "status"} {
			d, path := makeDir(t)
			require.NoError(t, os.RemoveAll(filepath.Join(path, gone)))
			if instead == gone {
				require.NoError(t, unix.Mkfifo(filepath.Join(path, instead), 0o600))
			}
			assert.Equal(t, missing, d.damage())
			require.NoError(t, d.renew())
			assert.Equal(t, none, d.damage())
			d.rewind()
			_, err := d.stdout.WriteString("<i><d><3><flags></dir><i><d>")
			require.NoError(t, err)
			rec, ok := d.reported("id")
			require.True(t, ok)
			assert.Equal(t, 3, rec.Status)
		}
	}
}

// The look is cheap only while the directory itself does not change: that must hide
// nothing, neither right after the start nor later.
func TestDamageSeesWhatWasPutInTheFilesPlace(t *testing.T) {
	testenv.Slow(t)
	plant := map[string]func(path string) error{
		"a pipe":            func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":       func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to nowhere": func(path string) error { return os.Symlink("nowhere", path) },
	}
	for _, name := range []string{"eval", "inner", "return", "state", "exit", "before", "out"} {
		for what, make := range plant {
			for _, old := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s becomes %s, old=%v", name, what, old), func(t *testing.T) {
					d, path := makeDir(t)
					if old {
						time.Sleep(30 * time.Millisecond) // The file system's clock is what is waited for.
					}
					assert.Equal(t, none, d.damage())
					planted := filepath.Join(path, name)
					require.NoError(t, os.Rename(planted, planted+".old"))
					require.NoError(t, make(planted))
					want := replaced
					if name == "out" && what == "a directory" {
						want = none // It is as good.
					}
					assert.Equal(t, want, d.damage())
				})
			}
		}
	}
	for _, name := range []string{"eval", "inner"} {
		d, path := makeDir(t)
		require.NoError(t, os.Rename(filepath.Join(path, "state"), filepath.Join(path, name)))
		assert.Equal(t, replaced, d.damage(), name)
	}
}

func TestACaptureThatLostItsNameIsNotUsedAgain(t *testing.T) {
	testenv.NeedProc(t)
	d, path := makeDir(t)
	begin := func() string {
		run, err := (&Exchange{dir: d}).Begin(Call{ID: "x", Script: "true", Names: script.ViaBuiltin}, true)
		require.NoError(t, err)
		run.Release()
		require.NotEmpty(t, run.lines)
		b, err := os.ReadFile(filepath.Join(path, "eval"))
		require.NoError(t, err)
		_, capture, _ := strings.Cut(strings.TrimSpace(string(b)), ">>")
		return strings.Fields(capture)[0]
	}
	first := begin()
	assert.Equal(t, first, begin(), "a capture is used again")
	require.NoError(t, os.Rename(first, first+".old"))
	require.NoError(t, unix.Mkfifo(first, 0o600))
	assert.NotEqual(t, first, begin())
}

func TestDiskErrorNamesTheRemedy(t *testing.T) {
	_, err := newDir("/no/such/dir/d", 4096, nil)
	disk, ok := errors.AsType[*DiskError](err)
	require.True(t, ok)
	assert.Equal(t, "/no/such/dir/d", disk.Dir)
	assert.ErrorContains(t, err, "set RuntimeDir, or XDG_RUNTIME_DIR")
}

func TestAFullDiskIsADiskError(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("limpet-test", dir, "tmpfs", 0, "size=64k"); err != nil {
		if err == unix.EPERM || err == unix.EACCES || err == unix.ENOSYS {
			t.Skipf("mounting is not permitted: %v", err)
		}
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	d, err := newDir(filepath.Join(dir, "d"), 4096, nil)
	require.NoError(t, err)
	defer d.close()
	_, err = (&Exchange{dir: d}).Begin(Call{ID: "x", Script: strings.Repeat("x", 100_000), Names: script.ViaBuiltin}, false)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "make room there")
}
