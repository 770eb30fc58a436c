package sandbox_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// Root in a sandbox is still the owner of root's files, and of the host's bwrap.
// Another user is nobody.
func TestACommandRunsAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	workspace, policy := usual(t)
	const uid, gid = 12345, 12346
	data := t.TempDir()
	put(t, data, "secret\n", "roots")
	require.NoError(t, os.Chmod(filepath.Join(data, "roots"), 0o600))
	for dir := workspace; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // So that others find it.
	}
	require.NoError(t, os.Chown(workspace, uid, gid))
	policy.FS.ExtraRO = []sandbox.Bind{{Src: data, Dst: "/data"}}

	const probe = "cat /data/roots 2>/dev/null && echo bites; (exec 3>>/proc/1/exe) 2>&1 | grep -q busy && echo bites; id -u; id -g; id -G"
	assert.Equal(t, "secret\nbites\nbites\n0\n0\n0", once(t, workspace, policy, probe), "the control")

	policy.RunAs = &sandbox.Credential{UID: uid, GID: gid}
	policy.FS.Tmp, policy.FS.TmpDir = sandbox.SharedTmp, t.TempDir()
	require.NoError(t, os.Chown(policy.FS.TmpDir, uid, gid))
	assert.Equal(t, "12345\n12346\n12346", once(t, workspace, policy, probe))
	assert.Equal(t, "in", once(t, workspace, policy, "echo in; : >file; : >/tmp/file; : >~/file"))
	for _, dir := range []string{workspace, policy.FS.TmpDir} {
		info, err := os.Stat(filepath.Join(dir, "file"))
		require.NoError(t, err)
		assert.EqualValues(t, uid, info.Sys().(*syscall.Stat_t).Uid)
	}

	require.NoError(t, os.Chmod(filepath.Dir(workspace), 0o700))
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	null, err := os.Open(os.DevNull)
	require.NoError(t, err)
	defer null.Close() // Read only.
	conn, err := where.Start(testenv.Context(t), transport.Spec{Path: "/bin/true", Argv: []string{"true"}, Dir: workspace, Stdin: null})
	require.ErrorIs(t, err, sandbox.ErrMount)
	assert.ErrorContains(t, err, "the user that the sandbox runs as cannot reach a directory; let that user enter the directories above it")
	assert.Nil(t, conn)

	_, err = shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	require.ErrorIs(t, err, sandbox.ErrRunAs)
	assert.ErrorContains(t, err, "user 12345:12346 cannot use the session directory")
}
