package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
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
	testenv.LetPass(t, workspace)
	require.NoError(t, os.Chown(workspace, uid, gid))
	policy.FS.ExtraRO = []sandbox.Bind{{Src: data, Dst: "/data"}}

	const probe = "cat /data/roots 2>/dev/null && echo bites; id -u; id -g; id -G"
	assert.Equal(t, "secret\nbites\n0\n0\n0", once(t, workspace, policy, probe), "the control")

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
}

// asAnother is WorkspaceWrite for a user who is not the program's.
func asAnother(t *testing.T) (workspace string, policy *sandbox.Policy) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	workspace, policy = usual(t)
	policy.RunAs = &sandbox.Credential{UID: 12345, GID: 12346}
	testenv.LetPass(t, workspace)
	require.NoError(t, os.Chown(workspace, 12345, 12346))
	return workspace, policy
}

// The suite of all transports is run as another user too. This is what it does not
// look at.
func TestAShellRunsAsAnotherUser(t *testing.T) {
	workspace, policy := asAnother(t)
	runtime := t.TempDir()
	require.NoError(t, os.Chmod(runtime, 0o700))
	t.Setenv("XDG_RUNTIME_DIR", runtime) // No other user can pass through that.
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	opts := &shell.Options{Dir: workspace, Transport: where, OutputLimit: 1000, SpoolLimit: 1 << 20}
	sh, err := shell.Start(testenv.Context(t), opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	assert.Equal(t, "12345 12346 12346", says(t, sh, "echo $(id -u) $(id -g) $(id -G)"))
	assert.Equal(t, "out\nerr", says(t, sh, "echo out >/dev/stdout; echo err >/dev/stderr"), "they can be opened by name")
	assert.Equal(t, "12345 700", says(t, sh, "stat -Lc '%u %a' $(dirname $(readlink /proc/self/fd/2))"), "nobody else can write to it")

	res, err := sh.Run(testenv.Context(t), "yes | head -c 5000")
	require.NoError(t, err)
	info, err := os.Stat(res.Stdout.Path)
	require.NoError(t, err)
	assert.EqualValues(t, 0, info.Sys().(*syscall.Stat_t).Uid, "what limpet keeps is nobody else's")
	res, err = sh.Do(testenv.Context(t), command.Request{Script: "id -u; cat >/dev/stderr", Stdin: strings.NewReader("in\n")})
	require.NoError(t, err)
	assert.Equal(t, "12345\nin\n", res.Stdout.String()+res.Stderr.String())

	require.NoError(t, os.Mkdir(filepath.Join(workspace, "roots"), 0o700))
	_, err = sh.Do(testenv.Context(t), command.Request{Script: "echo ran", Dir: "roots"})
	require.ErrorIs(t, err, os.ErrPermission)
	assert.ErrorContains(t, err, "cannot start in directory")
	assert.Equal(t, "0", says(t, sh, "echo $?"))
}

func TestALongScriptRunsAsAnotherUser(t *testing.T) {
	workspace, policy := asAnother(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	r := oneshot.New(&oneshot.Options{Dir: workspace, Transport: where})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	res, err := r.Run(testenv.Context(t), ": "+strings.Repeat("x", 1<<18)+"\nid -u; echo in >/dev/stderr")
	require.NoError(t, err)
	assert.Equal(t, "12345\nin\n", res.Stdout.String()+res.Stderr.String())
}

// wrapped is a transport that does not pass on who its processes run as.
type wrapped struct{ transport.Transport }

func TestASessionDirectoryOfAnotherUserIsRefused(t *testing.T) {
	workspace, policy := asAnother(t)
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	_, err = shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: wrapped{where}})
	require.ErrorIs(t, err, sandbox.ErrRunAs)
	assert.ErrorContains(t, err, "belongs to user 0, not to 12345:12346")

	closed := t.TempDir()
	require.NoError(t, os.Chmod(closed, 0o700))
	_, err = shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: closed, Transport: where})
	require.ErrorIs(t, err, sandbox.ErrMount)
	assert.ErrorContains(t, err, "cannot reach")
}
