package approve_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
)

func TestAFileIsSafeIfNobodyButRootCanReplaceIt(t *testing.T) {
	dir := t.TempDir()
	system, err := exec.LookPath("true")
	require.NoError(t, err)
	require.NoError(t, os.Symlink(system, filepath.Join(dir, "link")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "dead")))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "own"), nil, 0o700))
	for path, want := range map[string][2]bool{
		"/usr/bin/env": {true, true}, "/usr/bin/nosuch": {}, filepath.Join(dir, "nosuch"): {},
		filepath.Join(dir, "link"): {true, false}, filepath.Join(dir, "dead"): {true, false}, filepath.Join(dir, "own"): {true, false},
	} {
		exists, safe := approve.File(path)
		assert.Equal(t, want, [2]bool{exists, safe}, path)
	}
}
