package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// What has a protected name cannot be written, removed or put out of the way, however
// deep it is; what ExtraRW names can.
func TestWhatHasAProtectedNameIsReadOnly(t *testing.T) {
	workspace, policy := usual(t)
	names := []string{".cursor/mcp.json", "app/.npmrc", "app/web/.devcontainer/x"}
	put(t, workspace, "kept", names...)
	put(t, workspace, "kept", "app/.exrc", "node_modules/x/.npmrc", "a/b/c/.npmrc")
	p := policy.With(nil, []string{filepath.Join(workspace, "app/.exrc")})
	const script = `for f in .cursor/mcp.json app/.npmrc app/web/.devcontainer/x; do
	{ echo bites >$f; echo bites >>$f; rm -rf $f; mv $f moved; } 2>/dev/null
done
{ rm -rf .cursor app; mv app/web moved; mv app moved; touch .cursor/new; } 2>/dev/null
echo written | tee app/.exrc node_modules/x/.npmrc a/b/c/.npmrc
mv node_modules gone && echo replaced`
	assert.Equal(t, "written\nreplaced", once(t, workspace, &p, script))
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(workspace, name))
		require.NoError(t, err)
		assert.Equal(t, "kept", string(b), name)
	}
	assert.NoFileExists(t, filepath.Join(workspace, ".cursor/new"))
}

// What has such a name and is made in the workspace itself is told. Deeper down a clone
// or an installation goes through; what it made is read-only in the next sandbox.
func TestWhatIsMadeWithAProtectedNameIsToldAtTheTopAlone(t *testing.T) {
	workspace, policy := usual(t)
	where, violations := told(t, *policy)
	sh := startWith(t, workspace, where)
	says(t, sh, "mkdir -p clone/sub; echo x >clone/.npmrc; echo x >clone/sub/.envrc")
	assert.Equal(t, "again", says(t, sh, "echo again >clone/.npmrc; cat clone/.npmrc"))
	assert.Empty(t, violations())
	assert.Equal(t, "again", once(t, workspace, policy, "{ echo bites >clone/.npmrc; } 2>/dev/null; cat clone/.npmrc"))

	says(t, sh, "echo x >.npmrc")
	_, err := sh.Run(testenv.Context(t), "true")
	require.ErrorIs(t, err, sandbox.ErrViolation)
	assert.Equal(t, []sandbox.Violation{{Path: filepath.Join(workspace, ".npmrc")}}, violations())
}

// Nothing can be mounted on a symlink: what it leads to is read-only, and it may not lead
// elsewhere.
func TestASymlinkWithAProtectedNameMayNotLeadElsewhere(t *testing.T) {
	workspace, policy := usual(t)
	put(t, workspace, "kept", "rc")
	link := filepath.Join(workspace, "sub", ".zshrc")
	put(t, workspace, "", "sub/")
	require.NoError(t, os.Symlink("../rc", link))
	for _, script := range []string{"ln -sf other sub/.zshrc", "rm sub/.zshrc; echo x >sub/.zshrc"} {
		where, violations := told(t, *policy)
		sh := startWith(t, workspace, where)
		assert.Equal(t, "kept", says(t, sh, "{ echo bites >sub/.zshrc; rm rc; } 2>/dev/null; cat rc"))
		assert.Empty(t, violations())
		says(t, sh, script)
		require.NoError(t, sh.Close())
		assert.Equal(t, []sandbox.Violation{{Path: link}}, violations(), script)
		require.NoError(t, os.Remove(link))
		require.NoError(t, os.Symlink("../rc", link))
	}
}
