package sandbox_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport"
)

// sharing is a policy for a workspace in a home directory, with a home and a
// /tmp that its sandboxes share.
func sharing(t *testing.T) (workspace string, policy sandbox.Policy) {
	t.Helper()
	need(t)
	home := testenv.TempDir(t)
	t.Setenv("HOME", home)
	workspace = filepath.Join(home, "src", "project")
	put(t, workspace, "", "sub/")
	put(t, home, "secret\n", ".netrc")
	policy = sandbox.WorkspaceWrite(workspace)
	policy.FS.Home, policy.FS.HomeDir = sandbox.SharedHome, testenv.TempDir(t)
	policy.FS.Tmp, policy.FS.TmpDir = sandbox.SharedTmp, testenv.TempDir(t)
	return workspace, policy
}

func TestSandboxesOfOneAgentShareTmpAndHome(t *testing.T) {
	workspace, policy := sharing(t)
	alone := policy
	alone.FS.Home, alone.FS.HomeDir, alone.FS.Tmp, alone.FS.TmpDir = 0, "", 0, ""
	const write, read = "echo t >/tmp/f; echo h >~/f; echo w >f", "cat /tmp/f ~/f ~/src/project/f ~/.netrc 2>/dev/null"
	sh := start(t, workspace, &policy)
	says(t, sh, write)
	assert.Equal(t, "t\nh\nw", once(t, workspace, &policy, read))
	assert.Equal(t, "t\nh\nw", says(t, start(t, workspace, &policy), read))
	assert.Equal(t, "w", once(t, workspace, &alone, read), "others have their own")
	assert.Equal(t, "/tmp", once(t, workspace, &policy, "echo $TMPDIR"))

	for _, dir := range []string{policy.FS.HomeDir, policy.FS.TmpDir} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		assert.Equal(t, os.ModeDir|0o700, info.Mode())
		assert.FileExists(t, filepath.Join(dir, "f"))
	}
}

// The way to the workspace leads through the shared home, and bwrap would follow
// a symlink there to make the rest of it (CVE-2026-87766). A sandbox cannot put
// one there; if there is one all the same, no sandbox starts.
func TestNoMountPointIsMadeBehindASymlink(t *testing.T) {
	workspace, policy := sharing(t)
	for _, script := range []string{"mv ~/src ~/old", "rmdir ~/src/project", "rm -rf ~/src; ln -s /etc ~/src"} {
		once(t, workspace, &policy, script)
		assert.DirExists(t, filepath.Join(policy.FS.HomeDir, "src/project"), script)
	}
	control := policy
	control.FS.Workspace = t.TempDir()
	once(t, control.FS.Workspace, &control, "mv ~/src ~/old")
	require.NoDirExists(t, filepath.Join(policy.FS.HomeDir, "src"), "one that needs no way there can")

	victim := t.TempDir()
	put(t, policy.FS.HomeDir, "", "src/")
	for _, link := range []string{"src", "src/project"} {
		require.NoError(t, os.RemoveAll(filepath.Join(policy.FS.HomeDir, link)))
		require.NoError(t, os.Symlink(victim, filepath.Join(policy.FS.HomeDir, link)))
		where, err := sandbox.New(policy)
		require.NoError(t, err)
		_, err = where.Start(testenv.Context(t), transport.Spec{Path: "/bin/true", Argv: []string{"true"}, Dir: workspace})
		require.ErrorIs(t, err, sandbox.ErrMount)
		assert.ErrorContains(t, err, "cannot mount something at "+filepath.Join(policy.FS.HomeDir, link))
		require.NoError(t, os.Remove(filepath.Join(policy.FS.HomeDir, link)))
		put(t, policy.FS.HomeDir, "", "src/")
	}
	left, err := os.ReadDir(victim)
	require.NoError(t, err)
	assert.Empty(t, left)
}

// What is shown in the shared home besides is mounted on what limpet makes there.
func TestAFileIsShownInASharedHome(t *testing.T) {
	workspace, policy := sharing(t)
	outside := t.TempDir()
	put(t, outside, "conf\n", "gitconfig", "dir/file")
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	policy.FS.ExtraRO = []sandbox.Bind{
		{Src: filepath.Join(outside, "gitconfig"), Dst: filepath.Join(home, ".gitconfig")},
		{Src: filepath.Join(outside, "dir"), Dst: filepath.Join(home, ".config/dir")},
	}
	for range 2 {
		assert.Equal(t, "conf\nconf", once(t, workspace, &policy, "cat ~/.gitconfig ~/.config/dir/file; (echo x >~/.gitconfig) 2>/dev/null; mv ~/.config ~/old 2>/dev/null"))
	}
	require.NoError(t, os.Remove(filepath.Join(policy.FS.HomeDir, ".gitconfig")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "new"), filepath.Join(policy.FS.HomeDir, ".gitconfig")))
	where, err := sandbox.New(policy)
	require.NoError(t, err)
	_, err = where.Start(testenv.Context(t), transport.Spec{Path: "/bin/true", Argv: []string{"true"}, Dir: workspace})
	require.ErrorIs(t, err, sandbox.ErrMount)
	assert.ErrorContains(t, err, ".gitconfig: it is not a file; remove it")
	assert.NoFileExists(t, filepath.Join(outside, "new"))
}

// A session has its mount point in the shared /tmp as long as it lives.
func TestASessionLeavesNoMountPointOfItsOwn(t *testing.T) {
	workspace, policy := sharing(t)
	run, err := os.MkdirTemp("/tmp", "limpet-test-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(run)) })
	sessions := func() []string {
		paths, err := filepath.Glob(filepath.Join(policy.FS.TmpDir, filepath.Base(run), "limpet-*/*/*"))
		require.NoError(t, err)
		return paths
	}
	where, err := sandbox.New(policy)
	require.NoError(t, err)
	sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: run, Transport: where})
	require.NoError(t, err)
	assert.Equal(t, "in", says(t, sh, "echo in"))
	assert.Len(t, sessions(), 1)
	require.NoError(t, sh.Close())
	assert.Empty(t, sessions())
}
