package transfer_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/transfer"
)

func TestAFullDiskIsSaid(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := filepath.Join(testenv.TempDir(t), "s"), testenv.MountTmpfs(t, "size=1m", 0)
		write(t, filepath.Join(source, "a"), random(t, 100<<10), 0o600)
		write(t, filepath.Join(source, "b"), random(t, 5<<20), 0o600)
		from, to, path, as := way(t, source, dest)
		err := transfer.New(from, to, nil).Copy(testenv.Context(t), path, as)
		require.ErrorIs(t, err, syscall.ENOSPC)
		assert.ErrorContains(t, err, `s/b": no space left on device; it needs 5120 KiB more, and `)
		left, err := os.ReadDir(filepath.Join(dest, "s"))
		require.NoError(t, err)
		for _, one := range left {
			assert.Equal(t, "a", one.Name(), "nothing is left of it")
		}
	})
}

// Each of the files would have room, had it the disk for itself.
func TestOfSeveralFilesThatFillADiskNothingIsLeft(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := filepath.Join(testenv.TempDir(t), "s"), testenv.MountTmpfs(t, "size=6m", 0)
		for _, name := range []string{"a", "b", "c"} {
			write(t, filepath.Join(source, name), random(t, 4<<20), 0o600)
		}
		from, to, path, as := way(t, source, dest)
		err := transfer.New(from, to, nil).Copy(testenv.Context(t), path, as)
		require.ErrorIs(t, err, syscall.ENOSPC)
		left, err := os.ReadDir(filepath.Join(dest, "s"))
		require.NoError(t, err)
		for _, one := range left { // One may have been quicker.
			assert.NotContains(t, one.Name(), ".limpet-part")
		}
	})
}

// The disk was large enough when the file began.
func TestADiskThatGetsFullIsSaid(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := filepath.Join(testenv.TempDir(t), "f"), testenv.MountTmpfs(t, "size=8m", 0)
		write(t, source, random(t, 6<<20), 0o600)
		from, to, path, as := way(t, source, dest)
		filling := &changer{Source: from, change: func() {
			require.NoError(t, os.WriteFile(filepath.Join(dest, "other"), make([]byte, 4<<20), 0o600))
		}}
		err := transfer.New(filling, to, nil).Copy(testenv.Context(t), path, as)
		require.ErrorIs(t, err, syscall.ENOSPC)
		assert.ErrorContains(t, err, "are free: make room there")
		left, err := os.ReadDir(dest)
		require.NoError(t, err)
		require.Len(t, left, 1)
		assert.Equal(t, "other", left[0].Name(), "nothing is left of the file")
	})
}

func TestAFileThatHasNoSizeIsNotCopiedAsAnEmptyOne(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		dest := testenv.TempDir(t)
		from, to, path, as := way(t, "/proc/self/status", dest)
		var n noted
		require.ErrorIs(t, transfer.New(from, to, n.options()).Copy(testenv.Context(t), path, as), transfer.ErrPartly)
		require.Len(t, n.failed, 1)
		assert.Contains(t, n.failed[0], "it has no size before it is read")
		left, err := os.ReadDir(dest)
		require.NoError(t, err)
		assert.Empty(t, left)
	})
}

// A time that is no number of nanoseconds is not made one of another century. A tmpfs has such times.
func TestATimeThatIsFarAwayIsNotAnother(t *testing.T) {
	both(t, func(t *testing.T, way func(*testing.T, string, string) (transfer.Source, transfer.Sink, string, string)) {
		source, dest := testenv.MountTmpfs(t, "size=1m", 0), testenv.MountTmpfs(t, "size=1m", 0) // Others have fewer, and round to what they have.
		for name, date := range map[string]string{"late": "9999-01-01 UTC", "early": "0001-01-01 UTC"} {
			out, err := exec.Command("touch", "-d", date, filepath.Join(source, name)).CombinedOutput()
			require.NoError(t, err, "%s", out)
		}
		from, to, path, as := way(t, source, dest)
		for _, same := range []int64{0, 2} {
			c := transfer.New(from, to, nil)
			require.NoError(t, c.Copy(testenv.Context(t), path, as))
			assert.Equal(t, same, c.Result().Same)
		}
		for name, year := range map[string]int{"late": 2262, "early": 1677} {
			found, err := filepath.Glob(filepath.Join(dest, "*", name))
			require.NoError(t, err)
			require.Len(t, found, 1)
			st, err := os.Stat(found[0])
			require.NoError(t, err)
			assert.Equal(t, year, st.ModTime().UTC().Year())
		}
	})
}
