package approve_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// What is known of a policy is what scripts are judged by.
func TestAPolicyConfinesScripts(t *testing.T) {
	work := testenv.TempDir(t)
	judge := func(script string, policy sandbox.Policy) approval.Verdict {
		home, err := os.UserHomeDir()
		require.NoError(t, err)
		opts := &approval.Options{Home: home, Path: approve.PathOf(nil), File: approve.File, Exported: approve.Exported(nil)}
		approve.Confine(opts, policy)
		return approval.Judge(script, opts).Verdict
	}
	for script, want := range map[string]approval.Verdict{
		"kill 1": approval.Allow, "kill %1; ls": approval.Allow, "rm a": approval.Ask, "rm -rf /tmp/a": approval.Ask, "ls > /tmp/a": approval.Ask, "rm -rf /": approval.Deny, "ls > /usr/nosuch": approval.Allow, "rm -rf /usr/share/nosuch": approval.Allow,
	} {
		assert.Equal(t, want, judge(script, sandbox.WorkspaceWrite(work)), script)
		assert.Equal(t, min(want, approval.Ask), judge(script, sandbox.Unconfined("a test")), script)
	}
	var opts approval.Options
	approve.Confine(&opts, sandbox.AllowDomains(work, "example.com"))
	assert.False(t, opts.Confined.Network)
	assert.True(t, opts.Confined.Processes)
	assert.Equal(t, os.Geteuid() != 0, opts.Confined.Privileges)
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
