package shell_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

// Each script begins with them: bash itself never has them on, so no saved state has them.
func TestOptionsThatAreKeptOutliveBash(t *testing.T) {
	sh := start(t, &shell.Options{KeepOptions: true})
	pid := bashPID(t, sh)
	strict := func(sh *shell.PersistentShell, name string) {
		res := run(t, sh, "echo begun; false; echo on")
		assert.Equal(t, 1, res.ExitCode, name)
		assert.Equal(t, "begun\n", res.Stdout.String(), name)
	}
	run(t, sh, "set -e")
	strict(sh, "kept")
	killAndWait(t, pid)
	strict(sh, "after a death of bash")

	state, err := sh.Checkpoint(testenv.Context(t))
	require.NoError(t, err)
	strict(start(t, &shell.Options{State: &state}), "in a shell with that state")
	run(t, sh, "set +e")
	assert.Equal(t, "on\n", run(t, sh, "false; echo on").Stdout.String())
	_, err = sh.Restore(testenv.Context(t), state)
	require.NoError(t, err)
	strict(sh, "brought back")
}
