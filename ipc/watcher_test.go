//go:build linux

package ipc_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
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

// instances counts the inotify instances of this process.
func instances(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, entry := range entries {
		if link, err := os.Readlink("/proc/self/fd/" + entry.Name()); err == nil && strings.Contains(link, "inotify") {
			n++
		}
	}
	return n
}

func wakes(t *testing.T, watch *ipc.Watch) {
	t.Helper()
	select {
	case <-watch.C:
	case <-time.After(testenv.Patience):
		require.FailNow(t, "no event comes")
	}
}

func TestManyDirectoriesShareOneInotifyInstance(t *testing.T) {
	var w ipc.Watcher
	before := instances(t)
	var watches []*ipc.Watch
	dirs := make([]string, 50)
	for i := range dirs {
		dirs[i] = t.TempDir()
		watch := w.Watch(dirs[i])
		require.NoError(t, watch.Err)
		watches = append(watches, watch)
	}
	assert.Equal(t, before+1, instances(t))
	require.NoError(t, os.WriteFile(filepath.Join(dirs[7], "record"), []byte("x"), 0o600))
	wakes(t, watches[7])
	assert.Empty(t, watches[8].C, "that was not for it")
	for i, watch := range watches {
		assert.Equal(t, before+1, instances(t), "%d closed", i)
		watch.Close()
		watch.Close()
	}
	assert.Equal(t, before, instances(t))
}

func TestAWatcherCanBeUsedAgainAfterItsLastWatch(t *testing.T) {
	var w ipc.Watcher
	for range 3 {
		dir := t.TempDir()
		watch := w.Watch(dir)
		require.NoError(t, watch.Err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
		wakes(t, watch)
		watch.Close()
	}
}

func TestAMissingDirectoryIsPolledFor(t *testing.T) {
	var w ipc.Watcher
	before := instances(t)
	watch := w.Watch(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, watch.Err, os.ErrNotExist)
	watch.Close()
	assert.Equal(t, before, instances(t))
}

// exhaust opens all inotify instances that the user may have.
func exhaust() error {
	var w ipc.Watcher
	for {
		for {
			if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err == unix.EMFILE {
				break
			} else if err != nil {
				return err
			}
		}
		watch := w.Watch(os.TempDir())
		err := watch.Err
		watch.Close()
		if err == nil {
			continue // Another program has given one back just now.
		}
		if !errors.Is(err, unix.EMFILE) {
			return fmt.Errorf("Err is %w", err)
		}
		return nil
	}
}

func TestWithoutInotifyInstancesTheWatchSaysSo(t *testing.T) {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), helperVar+"=exhaust")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestDirIsPrivateAndGoesWithClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d, err := ipc.NewDir(path, 4096)
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

func TestRenewRecreatesWhatWasDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "base", "d")
	require.NoError(t, os.Mkdir(filepath.Dir(path), 0o700))
	d, err := ipc.NewDir(path, 4096)
	require.NoError(t, err)
	defer d.Close()
	assert.False(t, d.Deleted())
	for _, gone := range []string{filepath.Dir(path), path, filepath.Join(path, "eval"), filepath.Join(path, "inner")} {
		require.NoError(t, os.RemoveAll(gone))
		assert.True(t, d.Deleted(), gone)
		require.NoError(t, d.Renew())
		assert.False(t, d.Deleted(), gone)
		run, _, err := d.Begin(ipc.Call{ID: "x", Script: "true", Names: ipc.ViaBuiltin}, false)
		require.NoError(t, err)
		run.Release()
	}
}

func TestDiskErrorNamesTheRemedy(t *testing.T) {
	_, err := ipc.NewDir("/no/such/dir/d", 4096)
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
	d, err := ipc.NewDir(filepath.Join(dir, "d"), 4096)
	require.NoError(t, err)
	defer d.Close()
	_, _, err = d.Begin(ipc.Call{ID: "x", Script: strings.Repeat("x", 100_000), Names: ipc.ViaBuiltin}, false)
	require.ErrorIs(t, err, unix.ENOSPC)
	assert.ErrorContains(t, err, "make room there")
}
