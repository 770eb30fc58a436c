package files_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/files"
)

func TestRoomIsFoundAndGivenBack(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("limpet-test", dir, "tmpfs", 0, "size=128k"); err != nil {
		if noPermission(err) {
			t.Skipf("mounting is not permitted: %v", err)
		}
		require.NoError(t, err)
	}
	t.Cleanup(func() { require.NoError(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	f, err := os.Create(filepath.Join(dir, "f"))
	require.NoError(t, err)
	defer f.Close()
	for range 10 {
		require.NoError(t, files.Room(f))
	}
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(int(f.Fd()), &st))
	assert.Zero(t, st.Size)
	assert.Zero(t, st.Blocks)

	_, err = f.Write(make([]byte, 96<<10))
	require.NoError(t, err)
	require.ErrorIs(t, files.Room(f), unix.ENOSPC)
	require.NoError(t, f.Truncate(0))
	require.NoError(t, files.Room(f))
}

func noPermission(err error) bool {
	return err == unix.EPERM || err == unix.EACCES || err == unix.ENOSYS
}

func TestRoomOfWhatCannotBeAskedIsNoError(t *testing.T) {
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close()
	assert.NoError(t, files.Room(null))
}
