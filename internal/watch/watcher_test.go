//go:build linux

package watch_test

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
	"github.com/limpet-sh/limpet/internal/watch"
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

func wakes(t *testing.T, one *watch.Watch) {
	t.Helper()
	select {
	case <-one.C:
	case <-time.After(testenv.Patience):
		require.FailNow(t, "no event comes")
	}
}

func TestManyDirectoriesShareOneInotifyInstance(t *testing.T) {
	var w watch.Watcher
	before := instances(t)
	var watches []*watch.Watch
	dirs := make([]string, 50)
	for i := range dirs {
		dirs[i] = t.TempDir()
		one := w.Watch(dirs[i])
		require.NoError(t, one.Err)
		watches = append(watches, one)
	}
	assert.Equal(t, before+1, instances(t))
	require.NoError(t, os.WriteFile(filepath.Join(dirs[7], "record"), []byte("x"), 0o600))
	wakes(t, watches[7])
	assert.Empty(t, watches[8].C, "that was not for it")
	for i, one := range watches {
		assert.Equal(t, before+1, instances(t), "%d closed", i)
		one.Close()
		one.Close()
	}
	assert.Equal(t, before, instances(t))
}

func TestAWatcherCanBeUsedAgainAfterItsLastWatch(t *testing.T) {
	var w watch.Watcher
	for range 3 {
		dir := t.TempDir()
		one := w.Watch(dir)
		require.NoError(t, one.Err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
		wakes(t, one)
		one.Close()
	}
}

func TestAMissingDirectoryIsPolledFor(t *testing.T) {
	var w watch.Watcher
	before := instances(t)
	one := w.Watch(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, one.Err, os.ErrNotExist)
	one.Close()
	assert.Equal(t, before, instances(t))
}

// exhaust opens all inotify instances that the user may have.
func exhaust() error {
	var w watch.Watcher
	for {
		for {
			if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err == unix.EMFILE {
				break
			} else if err != nil {
				return err
			}
		}
		one := w.Watch(os.TempDir())
		err := one.Err
		one.Close()
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
