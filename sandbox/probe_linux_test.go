package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

func TestASecondProbeStartsNothing(t *testing.T) {
	need(t) // The first one, if no other test's was.
	tmp := testenv.TempDir(t)
	t.Setenv("TMPDIR", tmp) // In which a directory is made for each sandbox that is tried.
	long := time.Unix(1, 0)
	require.NoError(t, os.Chtimes(tmp, time.Time{}, long))
	untouched := func() bool {
		info, err := os.Stat(tmp)
		require.NoError(t, err)
		return info.ModTime().Equal(long)
	}
	_, err := sandbox.Probe(testenv.Context(t))
	require.NoError(t, err)
	assert.True(t, untouched())

	// One that was cut short is not remembered: it says nothing about the machine.
	ctx, cancel := context.WithCancel(testenv.Context(t))
	cancel()
	_, err = sandbox.Probe(ctx)
	require.ErrorContains(t, err, context.Canceled.Error())
	assert.False(t, untouched(), "the control")
	_, err = sandbox.Probe(testenv.Context(t))
	require.NoError(t, err)
}

// countingBackend refuses, and counts how often it was asked.
func countingBackend(t *testing.T) (path string, count func() int) {
	t.Helper()
	log := filepath.Join(testenv.TempDir(t), "log")
	path = aBackend(t, version011+`echo x >>`+log+`; echo "bwrap: loopback: Failed RTM_NEWADDR" >&2; exit 1`)
	return path, func() int {
		b, _ := os.ReadFile(log) // Not there: it was not asked.
		return strings.Count(string(b), "x")
	}
}

func TestABwrapThatHasChangedIsProbedAnew(t *testing.T) {
	need(t)
	path, count := countingBackend(t)
	for asked, change := range []func() error{
		func() error { return nil },
		func() error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
		func() error { // Another size, at the same time.
			b, err := os.ReadFile(path)
			return errors.Join(err, os.WriteFile(path, append(b, '\n'), 0o755), os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
		},
		func() error { // The same file elsewhere.
			elsewhere := filepath.Join(testenv.TempDir(t), "bin")
			lookIn(t, elsewhere)
			defer func() { path = filepath.Join(elsewhere, "bwrap") }()
			return os.Rename(filepath.Dir(path), elsewhere)
		},
	} {
		require.NoError(t, change())
		for range 2 {
			caps, err := sandbox.Probe(testenv.Context(t))
			if notOurs(t, err) {
				continue
			}
			require.ErrorIs(t, err, sandbox.ErrNetns)
			assert.Equal(t, sandbox.Caps{Bwrap: path, Version: "0.11", Overlay: true}, caps)
			assert.Equal(t, asked+1, count())
		}
	}
}

// What the kernel refuses to one user it may grant to another. A program of its own
// becomes one: it cannot undo all of that.
func TestAnotherUserIsProbedFor(t *testing.T) {
	need(t)
	path, count := countingBackend(t)
	testenv.LetPass(t, filepath.Dir(path))
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe, filepath.Dir(path))
	cmd.Env = append(os.Environ(), helperVar+"=probe", "GORACE=atexit_sleep_ms=0", "TMPDIR=/tmp")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	if os.Geteuid() == 0 {
		assert.Equal(t, 2, count())
	}
}

// probeHelper probes as two users, twice each. As an ordinary user it can be one.
func probeHelper() error {
	sandbox.SetBackendDirs(os.Args[1:])
	for _, uid := range []int{os.Geteuid(), 12345} {
		if os.Geteuid() == 0 {
			if err := syscall.Seteuid(uid); err != nil {
				return err
			}
		}
		for range 2 {
			if _, err := sandbox.Probe(context.Background()); err == nil {
				return fmt.Errorf("a bwrap that refuses was a sandbox for %d", uid)
			}
		}
	}
	return nil
}
