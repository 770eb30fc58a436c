package sandbox_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/transporttest"
)

// workspaceVar names the workspace of the suite, for the programs that it runs.
const workspaceVar = "LIMPET_SANDBOXTEST_WORKSPACE"

// What limpet promises holds in a sandbox too. All directories of the suite are in one
// workspace.
func TestConformance(t *testing.T) { conform(t, transporttest.RunPart, nil) }

// Nor does it matter who it is that runs there.
func TestConformanceAsAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	conform(t, transporttest.RunCore, other)
}

func TestWorksByPolling(t *testing.T) {
	testenv.OnlyAll(t)
	conform(t, transporttest.RunPolled, nil)
}

func TestWorksByPollingAsAnotherUser(t *testing.T) {
	testenv.OnlyAll(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	conform(t, transporttest.RunPolled, other)
}

var other = &sandbox.Credential{UID: 12345, GID: 12346}

func conform(t *testing.T, suite func(*testing.T, func(*testing.T) transport.Transport, ...transporttest.Trait), who *sandbox.Credential) {
	testenv.Slow(t)
	need(t)
	workspace := os.Getenv(workspaceVar)
	if workspace == "" {
		workspace = t.TempDir()
		t.Setenv(workspaceVar, workspace)
		t.Setenv("TMPDIR", workspace)
		if who != nil {
			testenv.LetPass(t, workspace)
		}
	}
	traits := []transporttest.Trait{transporttest.EndsWithBash}
	if !sandbox.TellsSignals() {
		traits = append(traits, transporttest.HidesSignals)
	}
	suite(t, func(t *testing.T) transport.Transport {
		policy := sandbox.WorkspaceWrite(workspace)
		policy.Env.Pass = []string{"GITHUB_TOKEN"} // A check has it passed on.
		policy.RunAs = who
		where, err := sandbox.New(policy)
		require.NoError(t, err)
		return where
	}, traits...)
}
