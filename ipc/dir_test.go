//go:build linux

package ipc_test

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

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/ipc"
)

func TestDirIsPrivateAndGoesWithClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d, err := ipc.NewDir(path, 4096, nil)
	require.NoError(t, err)
	require.NoError(t, filepath.WalkDir(path, func(p string, e os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := e.Info()
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, p)
		return nil
	}))
	d.Close()
	d.Close()
	assert.NoDirExists(t, path)
}

func newDir(t *testing.T) (d *ipc.Dir, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "base", "d")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	d, err := ipc.NewDir(path, 4096, nil)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d, path
}

func TestRenewRecreatesWhatWasDeleted(t *testing.T) {
	for _, gone := range []string{"..", ".", "eval", "inner", "return", "state", "exit", "oldpwd", "out"} {
		t.Run(gone, func(t *testing.T) {
			d, path := newDir(t)
			assert.Equal(t, ipc.None, d.Damage())
			for range 2 {
				require.NoError(t, os.RemoveAll(filepath.Join(path, gone)))
				assert.Equal(t, ipc.Missing, d.Damage())
				require.NoError(t, d.Renew())
				assert.Equal(t, ipc.None, d.Damage())
				run, _, err := d.Begin(ipc.Call{ID: "x", Script: "true", Names: ipc.ViaBuiltin}, false)
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
			d, path := newDir(t)
			require.NoError(t, os.RemoveAll(filepath.Join(path, gone)))
			if instead == gone {
				require.NoError(t, unix.Mkfifo(filepath.Join(path, instead), 0o600))
			}
			assert.Equal(t, ipc.Missing, d.Damage())
			require.NoError(t, d.Renew())
			assert.Equal(t, ipc.None, d.Damage())
			d.Rewind()
			_, err := d.Stdout().WriteString("id 3 flags /dir id\n")
			require.NoError(t, err)
			rec, ok := d.Record("id")
			require.True(t, ok)
			assert.Equal(t, 3, rec.Status)
		}
	}
}

// The look is cheap only while the directory itself does not change: that must hide
// nothing, neither right after the start nor later.
func TestDamageSeesWhatWasPutInTheFilesPlace(t *testing.T) {
	plant := map[string]func(path string) error{
		"a pipe":            func(path string) error { return unix.Mkfifo(path, 0o600) },
		"a directory":       func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to nowhere": func(path string) error { return os.Symlink("nowhere", path) },
	}
	for _, name := range []string{"eval", "inner", "return", "state", "exit", "oldpwd", "out"} {
		for what, make := range plant {
			for _, old := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s becomes %s, old=%v", name, what, old), func(t *testing.T) {
					d, path := newDir(t)
					if old {
						time.Sleep(30 * time.Millisecond) // The file system's clock is what is waited for.
					}
					assert.Equal(t, ipc.None, d.Damage())
					planted := filepath.Join(path, name)
					require.NoError(t, os.Rename(planted, planted+".old"))
					require.NoError(t, make(planted))
					want := ipc.Replaced
					if name == "out" && what == "a directory" {
						want = ipc.None // It is as good.
					}
					assert.Equal(t, want, d.Damage())
				})
			}
		}
	}
	for _, name := range []string{"eval", "inner"} {
		d, path := newDir(t)
		require.NoError(t, os.Rename(filepath.Join(path, "state"), filepath.Join(path, name)))
		assert.Equal(t, ipc.Replaced, d.Damage(), name)
	}
}

func TestACaptureThatLostItsNameIsNotUsedAgain(t *testing.T) {
	testenv.NeedProc(t)
	d, path := newDir(t)
	begin := func() string {
		run, lines, err := d.Begin(ipc.Call{ID: "x", Script: "true", Names: ipc.ViaBuiltin}, true)
		require.NoError(t, err)
		run.Release()
		require.NotEmpty(t, lines)
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
	_, err := ipc.NewDir("/no/such/dir/d", 4096, nil)
	disk, ok := errors.AsType[*ipc.DiskError](err)
	require.True(t, ok)
	assert.Equal(t, "/no/such/dir/d", disk.Dir)
	assert.ErrorContains(t, err, "set RuntimeDir, or XDG_RUNTIME_DIR")
	assert.ErrorContains(t, &ipc.DiskError{Dir: "d", Err: unix.ENOSPC}, "make room there")
	assert.ErrorContains(t, &ipc.DiskError{Dir: "d", Err: unix.EDQUOT}, "make room there")
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
	d, err := ipc.NewDir(filepath.Join(dir, "d"), 4096, nil)
	require.NoError(t, err)
	defer d.Close()
	_, _, err = d.Begin(ipc.Call{ID: "x", Script: strings.Repeat("x", 100_000), Names: ipc.ViaBuiltin}, false)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "make room there")
}
