package approve_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/sandbox"
)

// What is known of a policy is what scripts are judged by.
func TestAPolicyConfinesScripts(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("HOME", home)
	work, tools := filepath.Join(home, "work"), filepath.Join(home, "tools", "1.0")
	for _, dir := range []string{work, tools} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	require.NoError(t, os.Symlink(tools, filepath.Join(home, "current")))
	env := []string{"PATH=" + filepath.Join(home, "current") + ":/usr/bin:/bin:nowhere", "HOME=" + home}
	judge := func(script string, policy sandbox.Policy, env []string) approval.Verdict {
		return approval.Judge(script, &approval.Options{Home: home, Path: approve.PathOf(env), File: approve.File, Exported: approve.Exported(env), Confined: approve.Confined(policy, env)}).Verdict
	}
	usual := sandbox.WorkspaceWrite(work)
	for script, want := range map[string]approval.Verdict{
		"rm -rf /tmp/a": approval.Allow, "ls > ~/a": approval.Allow, "kill 1": approval.Allow, "mktemp": approval.Allow, "rm a": approval.Ask, "ls > " + work + "/a": approval.Ask, "ls > ~/work/a": approval.Ask, "rm -rf ~/work": approval.Ask,
		"touch ~/tools/1.0/ls": approval.Ask, "touch ~/current/ls": approval.Ask, "touch ~/tools/2.0": approval.Allow,
	} {
		assert.Equal(t, want, judge(script, usual, env), script)
		assert.Equal(t, approval.Ask, judge(script, sandbox.Unconfined("a test"), env), script)
	}
	c := approve.Confined(sandbox.AllowDomains(work, "example.com"), env)
	assert.False(t, c.Network)
	assert.True(t, c.Processes)
	assert.Equal(t, os.Geteuid() != 0, c.Privileges)
	for name, change := range map[string]func(p *sandbox.Policy, env *[]string){
		"another home":           func(_ *sandbox.Policy, env *[]string) { *env = append(*env, "HOME="+work) },
		"a home of the policy's": func(p *sandbox.Policy, _ *[]string) { p.Env.Set = map[string]string{"HOME": work} },
		"a PATH of the policy's": func(p *sandbox.Policy, _ *[]string) { p.Env.Set = map[string]string{"PATH": "/tmp/a"} },
		"a TMPDIR":               func(p *sandbox.Policy, _ *[]string) { p.Env.Set = map[string]string{"TMPDIR": work} },
		"a TMPDIR that is kept":  func(p *sandbox.Policy, _ *[]string) { p.Env.Pass = []string{"TMPDIR"} },
	} {
		policy, env := usual, append([]string{}, env...)
		change(&policy, &env)
		assert.Nil(t, approve.Confined(policy, env).Lost, name)
		assert.True(t, approve.Confined(policy, env).Network, name)
	}
}

// A file that runs as root is known by its mode and its owner.
func TestAFileWithTheSetUserIDBitIsKnown(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700))
	assert.False(t, approve.File(file).SetUID)
	require.NoError(t, os.Chmod(file, 0o700|os.ModeSetuid))
	assert.Equal(t, os.Geteuid() == 0, approve.File(file).SetUID)
	assert.False(t, approve.File("/usr/bin/env").SetUID)
}
