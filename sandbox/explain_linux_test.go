package sandbox_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// explained explains a policy, where there need not be a bwrap.
func explained(t *testing.T, p sandbox.Policy) []string {
	t.Helper()
	lookIn(t, t.TempDir())
	lines, err := sandbox.Explain(p, "")
	require.NoError(t, err)
	return lines
}

func TestExplainTellsOfTheWayToTheAllowedHosts(t *testing.T) {
	workspace := testenv.TempDir(t)
	exe, err := os.Executable()
	require.NoError(t, err)
	const noNet, seccomp = "  --unshare-net  # no network", "  --seccomp FD  # no system calls for: mounts, kernel interfaces that a shell has no use for, tracing, Unix sockets"
	helper := "  --ro-bind " + exe + " /run/limpet-helper  # opens the port of the proxy, and becomes the program"

	lines := explained(t, sandbox.AllowDomains(workspace, "example.com"))
	assert.Equal(t, "bwrap", lines[0])
	assert.Subset(t, lines, []string{noNet + " but a proxy to the hosts that are allowed", helper, seccomp})
	assert.Equal(t, "  -- /run/limpet-helper __limpet_sandbox_listen__ FD bash ...  # opens the port of the proxy, and becomes bash", lines[len(lines)-1])
	assert.Contains(t, lines, "  --bind "+workspace+" "+workspace+"  # the workspace")

	lines = explained(t, sandbox.WorkspaceWrite(workspace))
	assert.Contains(t, lines, noNet)
	assert.NotContains(t, lines, helper)
	assert.NotContains(t, strings.Join(explained(t, sandbox.HostNetwork(workspace)), "\n"), "--unshare-net")
}

func TestExplainQuotesAndSaysWhatIsLooser(t *testing.T) {
	workspace := testenv.TempDir(t) + "/it's here"
	require.NoError(t, os.Mkdir(workspace, 0o700))
	p := sandbox.WorkspaceWrite(workspace)
	p.Proc.AllowPtrace, p.Net.Unix = true, sandbox.UnixAllowed
	quoted := "'" + strings.ReplaceAll(workspace, "'", `'\''`) + "'"
	lines := explained(t, p)
	assert.Subset(t, lines, []string{
		"  --bind " + quoted + " " + quoted + "  # the workspace", "  --chdir " + quoted + "  # where it starts",
		"  --seccomp FD  # no system calls for: mounts, kernel interfaces that a shell has no use for",
	})
	for _, line := range lines[1 : len(lines)-1] {
		_, why, _ := strings.Cut(line, "  # ")
		assert.NotEmpty(t, why, line)
	}
	elsewhere, err := sandbox.Explain(p, "/usr")
	require.NoError(t, err)
	assert.True(t, slices.Contains(elsewhere, "  --chdir /usr  # where it starts"))
}

func TestExplainHasTheErrorsOfNew(t *testing.T) {
	lines, err := sandbox.Explain(sandbox.Unconfined("the user asked for it"), "")
	require.NoError(t, err)
	assert.Equal(t, []string{"no sandbox  # the user asked for it"}, lines)
	for want, p := range map[error]sandbox.Policy{sandbox.ErrNoPolicy: {}, sandbox.ErrBadWorkspace: sandbox.WorkspaceWrite("/")} {
		lines, err := sandbox.Explain(p, "")
		require.ErrorIs(t, err, want)
		assert.Empty(t, lines)
	}
}
