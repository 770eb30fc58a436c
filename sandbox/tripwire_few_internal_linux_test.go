package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// However a directory is looked through, what is there is found.
func TestNamesAreFoundInAnyDirectory(t *testing.T) {
	spots := func(dir string) (all []spot) {
		for _, name := range []string{".npmrc", ".bashrc", ".vscode", ".zed"} {
			all = append(all, spot{dir, name})
		}
		return all
	}
	for name, others := range map[string][]string{"few": {"a", "b"}, "other letters": {"é"}, "bytes": {"\xff"}, "case": {".ZED", "B"}, "none": nil} {
		dir := t.TempDir()
		for _, other := range others {
			require.NoError(t, os.WriteFile(filepath.Join(dir, other), nil, 0o600))
		}
		assert.Empty(t, findAll(spots(dir)), name)
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".npmrc"), nil, 0o600))
		require.NoError(t, os.Mkdir(filepath.Join(dir, ".vscode"), 0o700))
		require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, ".bashrc")))
		want := []spot{{dir, ".npmrc"}, {dir, ".bashrc"}, {dir, ".vscode"}}
		assert.Equal(t, want, findAll(spots(dir)), name)
		for i := range 200 {
			require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600))
		}
		assert.Equal(t, want, findAll(spots(dir)), "%s, and many", name)
	}
	assert.Empty(t, findAll(spots(filepath.Join(t.TempDir(), "gone"))))
}
