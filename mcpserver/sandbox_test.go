package mcpserver_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/session"
)

// A "git init", or just mkdir .git, makes what the sandbox protects. That is for a person to look at, and no
// reason for the next command not to run.
func TestACommandRunsBehindOneThatMadeSomethingProtected(t *testing.T) {
	testenv.Slow(t)
	if err := sandbox.Try(testenv.Context(t), sandbox.WorkspaceWrite); err != nil {
		t.Skipf("no sandbox is to be had here: %v", err)
	}
	workspace := testenv.TempDir(t)
	policy := sandbox.WorkspaceWrite(workspace)
	h := connect(t, setup{plain: true, sessions: session.Options{Policy: &policy}})
	_, text := h.call("run_command", object{"command": "mkdir .git && ls -a"})
	require.Contains(t, text, ".git\n")
	_, text = h.call("run_command", object{"command": "echo ran; echo x >file"})
	assert.Contains(t, text, "ran\n[exit 0")
	assert.Contains(t, text, "look at it first")
	assert.FileExists(t, workspace+"/file")
	_, text = h.call("run_command", object{"command": "echo again"})
	assert.Equal(t, "again\n[exit 0]", text, "it is told once")
}
