package sandbox_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/transporttest"
)

// workspaceVar names the workspace of the suite, for the programs that it runs.
const workspaceVar = "LIMPET_SANDBOXTEST_WORKSPACE"

// What the core promises holds in a sandbox too. All directories of the suite
// are in one workspace.
func TestConformance(t *testing.T) {
	need(t)
	workspace := os.Getenv(workspaceVar)
	if workspace == "" {
		workspace = t.TempDir()
		t.Setenv(workspaceVar, workspace)
		t.Setenv("TMPDIR", workspace)
	}
	transporttest.Run(t, func(t *testing.T) transport.Transport {
		policy := sandbox.WorkspaceWrite(workspace)
		policy.Env.Pass = []string{"GITHUB_TOKEN"} // A check has it passed on.
		where, err := sandbox.New(policy)
		require.NoError(t, err)
		return where
	}, transporttest.EndsWithBash)
}
