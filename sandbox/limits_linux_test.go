package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

// limited starts a shell with limits that need a cgroup. Where none is to be had,
// that is what the error must say: then nothing runs, and the test is skipped.
func limited(t *testing.T, limits sandbox.Limits) *shell.PersistentShell {
	t.Helper()
	workspace, policy := usual(t)
	policy.Limits = limits
	where, err := sandbox.New(*policy)
	require.NoError(t, err)
	sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	if errors.Is(err, sandbox.ErrLimits) {
		assert.ErrorContains(t, err, "Limits.MemoryMax and PidsMax need a delegated cgroup v2 in a child of which this program runs: ")
		assert.ErrorContains(t, err, "start it by systemd-run -p Delegate=yes -p DelegateSubgroup=main (systemd 254)")
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	return sh
}

func TestPidsMaxHoldsForRootToo(t *testing.T) {
	for range 2 { // What the first does to the cgroup above must not keep the second out.
		limited(t, sandbox.Limits{PidsMax: 8})
	}
	sh := limited(t, sandbox.Limits{PidsMax: 64})
	assert.Contains(t, says(t, sh, "for ((i = 0; i < 100; i++)); do sleep 100 & done 2>&1; jobs -r | wc -l"), "Resource temporarily unavailable")
}

func TestMemoryMaxEndsTheHog(t *testing.T) {
	sh := limited(t, sandbox.Limits{MemoryMax: 256 << 20})
	res, err := sh.Run(testenv.Context(t), "(x=$(head -c 1G /dev/zero | tr '\\0' x); : ${#x}) 2>/dev/null")
	require.NoError(t, err)
	assert.Equal(t, 137, res.ExitCode)
	assert.Contains(t, res.Denied, "ran out of memory (Limits.MemoryMax)")
	assert.Equal(t, "alive", says(t, sh, "echo alive"))
}

// A limit that cannot be set is never left out.
func TestWhereThereIsNoCgroupNothingRuns(t *testing.T) {
	workspace, policy := usual(t)
	for _, limits := range []sandbox.Limits{{PidsMax: 64}, {MemoryMax: 1 << 30}} {
		policy.Limits = limits
		where, err := sandbox.New(*policy)
		require.NoError(t, err)
		sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
		if err == nil {
			// Then they hold.
			group := says(t, sh, "cat /proc/self/cgroup")
			require.NoError(t, sh.Close())
			assert.NotEmpty(t, group)
			left, err := filepath.Glob("/sys/fs/cgroup/*/limpet-*")
			require.NoError(t, err)
			assert.Empty(t, left)
			continue
		}
		require.ErrorIs(t, err, sandbox.ErrLimits)
		entries, err := os.ReadDir(workspace)
		require.NoError(t, err)
		assert.Empty(t, entries)
	}
}

// After a fork that failed bash (5.2) waits for its last job, which may be for ever.
// Bash itself tries for 15 seconds before it gives up.
func TestAShellThatCannotForkGoesOn(t *testing.T) {
	t.Parallel()
	workspace, policy := asAnother(t)
	const alone = 12399 // A user of its own: others' processes would count.
	policy.RunAs = &sandbox.Credential{UID: alone, GID: alone}
	require.NoError(t, os.Chown(workspace, alone, alone))
	policy.Limits.NProc = 16
	sh := start(t, workspace, policy)
	says(t, sh, "x=1")
	_, err := sh.Checkpoint(testenv.Context(t)) // Else x may be lost: bash is killed.
	require.NoError(t, err)
	res, err := sh.Run(testenv.Context(t), "for ((i = 0; i < 50; i++)); do sleep 1000 & done")
	require.NoError(t, err)
	assert.Equal(t, 254, res.ExitCode)
	assert.Contains(t, res.Stderr.String(), "fork: Resource temporarily unavailable")
	require.NotNil(t, res.Restart)
	assert.Contains(t, res.Restart.Reason, "bash could not fork")
	assert.Equal(t, "1", says(t, sh, "echo $x; sleep 0"))
}
