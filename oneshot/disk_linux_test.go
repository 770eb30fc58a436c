package oneshot_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/oneshot"
)

func TestAFullDiskIsAnErrorOfARunnerToo(t *testing.T) {
	testenv.Slow(t)
	dir := t.TempDir()
	if err := unix.Mount("limpet-test", dir, "tmpfs", 0, "size=256k"); err != nil {
		if err == unix.EPERM || err == unix.EACCES || err == unix.ENOSYS {
			t.Skipf("mounting is not permitted: %v", err)
		}
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	r := runner(t, &oneshot.Options{RuntimeDir: dir})
	ballast := filepath.Join(dir, "ballast")
	wantFull := func(err error) {
		t.Helper()
		_, ok := errors.AsType[*ipc.DiskError](err)
		require.True(t, ok, "%T: %v", err, err)
		require.ErrorIs(t, err, unix.ENOSPC)
	}

	// It fills under the command, by somebody else's doing and by the command's own.
	res, err := r.Run(testenv.Context(t), "dd if=/dev/zero of="+ballast+" bs=4k 2>/dev/null; echo hello; exit 3")
	wantFull(err)
	assert.ErrorContains(t, err, "may be incomplete")
	assert.Equal(t, 3, res.ExitCode)

	res, err = r.Run(testenv.Context(t), "echo hello; true")
	wantFull(err)
	assert.Equal(t, command.CodeUnknown, res.ExitCode)

	require.NoError(t, os.Remove(ballast))
	res, err = r.Run(testenv.Context(t), "for i in {1..60000}; do echo line $i; done; true")
	wantFull(err)
	assert.Equal(t, 0, res.ExitCode)

	out, err := r.Run(testenv.Context(t), "echo hello; true")
	require.NoError(t, err)
	assert.Equal(t, "hello\n", out.Stdout.String())
}
