package statedir_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// A record of the expected size finds its room on a full disk, whether it is made or replaced, and nobody else gets that room meanwhile.
func TestTheLastRecordHasRoomOnAFullDisk(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=1m", 0)
	for _, more := range slices.Repeat([]int{0, 40 << 10}, 10) {
		for _, there := range []bool{false, true} {
			path, text := filepath.Join(dir, "record"), strings.Repeat("x", more+7<<10)
			require.NoError(t, statedir.Reserve(dir, more))
			if there {
				require.NoError(t, statedir.WriteJSON(path, "first"))
			}
			free := testenv.Fill(t, dir)
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() { // It takes what room there is.
				defer close(stopped)
				f, err := os.Create(filepath.Join(dir, "taker"))
				for block := make([]byte, 4096); err == nil; {
					if _, err = f.Write(block); err != nil {
						err = nil
						select {
						case <-stop:
							assert.NoError(t, f.Close())
							return
						default:
						}
					}
				}
				assert.NoError(t, err)
			}()
			err := statedir.WriteLastJSON(path, text)
			close(stop)
			<-stopped
			require.NoError(t, err)
			var got string
			require.NoError(t, statedir.ReadJSON(path, &got, 1<<20))
			assert.Equal(t, text, got)
			assert.NoFileExists(t, filepath.Join(dir, "reserve"))
			free()
			require.NoError(t, os.Remove(filepath.Join(dir, "taker")))
			require.NoError(t, os.Remove(path))
		}
	}
}

// A record that is larger than the room for it is an error, which says that the disk is full. The record that was there before stays.
func TestALastRecordThatIsTooLargeIsAnErrorOnAFullDisk(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=1m", 0)
	path := filepath.Join(dir, "record")
	require.NoError(t, statedir.Reserve(dir, 0))
	require.NoError(t, statedir.WriteJSON(path, "first"))
	free := testenv.Fill(t, dir)
	large := strings.Repeat("x", 100<<10)
	require.ErrorIs(t, statedir.WriteLastJSON(path, large), syscall.ENOSPC)
	var got string
	require.NoError(t, statedir.ReadJSON(path, &got, 1<<20))
	assert.Equal(t, "first", got)
	free()
	require.NoError(t, statedir.WriteLastJSON(path, large))
	require.NoError(t, statedir.ReadJSON(path, &got, 1<<20))
	assert.Equal(t, large, got)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 1)
}

// Whoever owns the directory may have put anything there.
func TestWhatHasThePlaceOfTheRoomIsNeitherWaitedForNorWrittenTo(t *testing.T) {
	dir := testenv.MountTmpfs(t, "size=1m", 0)
	path, reserve, other := filepath.Join(dir, "record"), filepath.Join(dir, "reserve"), filepath.Join(dir, "other")
	for name, put := range map[string]func() error{
		"a fifo":                 func() error { return syscall.Mkfifo(reserve, 0o600) },
		"a file of another name": func() error { return os.Link(other, reserve) },
	} {
		require.NoError(t, os.WriteFile(other, []byte("other"), 0o600))
		require.NoError(t, put(), name)
		free := testenv.Fill(t, dir)
		require.ErrorIs(t, statedir.WriteLastJSON(path, strings.Repeat("x", 5<<10)), syscall.ENOSPC, name)
		b, err := os.ReadFile(other)
		require.NoError(t, err)
		assert.Equal(t, "other", string(b), name)
		free()
	}
}
