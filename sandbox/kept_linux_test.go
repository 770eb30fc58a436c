package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/statedir"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// Sessions may be kept in any of these, by a limpet that was started with another environment.
func TestNoSandboxSeesWhereSessionsAreKept(t *testing.T) {
	need(t)
	t.Setenv("XDG_STATE_HOME", testenv.TempDir(t))
	usual, err := statedir.Default(statedir.Kept)
	require.NoError(t, err)
	workspace := testenv.TempDir(t)
	dirs := append([]string{usual}, statedir.Fallbacks(statedir.Kept)...)
	for _, dir := range dirs {
		file := filepath.Join(dir, "test-"+filepath.Base(workspace))
		require.NoError(t, os.MkdirAll(dir, statedir.DirMode))
		t.Cleanup(func() { _ = os.Remove(dir) }) // Sessions of the user may be there. What is above is limpet's for other things, too.
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		t.Cleanup(func() { require.NoError(t, os.Remove(file)) })

		policy := sandbox.WorkspaceWrite(workspace)
		policy.FS.ExtraRW = []sandbox.Bind{{Src: filepath.Dir(dir), Dst: "/srv"}}
		if strings.HasPrefix(dir, "/dev/") {
			_, err := sandbox.New(policy)
			require.ErrorIs(t, err, sandbox.ErrMount, "nothing there can be shown")
			continue
		}
		assert.Equal(t, "keep\n0", once(t, workspace, &policy, "ls /srv | grep keep; ls -A /srv/keep | wc -l"), dir)
		assert.Equal(t, "held", once(t, workspace, &policy, "{ rmdir /srv/keep || mv /srv/keep /srv/moved || echo >/srv/keep/x; } 2>/dev/null || echo held"), dir)
		assert.FileExists(t, file)
	}
	policy := sandbox.WorkspaceWrite(workspace)
	for _, dir := range dirs {
		assert.Equal(t, "none", once(t, workspace, &policy, "ls "+dir+" 2>/dev/null || echo none"), "where nothing shows it nothing is mounted")
	}
}
