package shell_test

import (
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
	"github.com/limpet-sh/limpet/transport/local"
)

// elsewhere is a transport that is not the local one, as far as a shell sees it.
type elsewhere struct{ local.Transport }

func TestLiveIsWhatTheShellHasNow(t *testing.T) {
	ctx := testenv.Context(t)
	sh := start(t, &shell.Options{Env: []string{"PATH=/usr/bin:/bin", "A=b"}, Dir: testenv.TempDir(t)})
	if runtime.GOOS != "linux" {
		_, err := sh.Live(ctx)
		require.Error(t, err)
		return
	}
	_, err := sh.Run(ctx, "f() { :; }; cd /tmp; (exit 3)")
	require.NoError(t, err)
	live, err := sh.Live(ctx)
	require.NoError(t, err)
	assert.Equal(t, []string{"f"}, live.Functions)
	assert.Empty(t, live.Traps, "limpet's own is not the shell's")
	assert.Contains(t, live.Env, "A=b")
	assert.Contains(t, live.Variables, command.LiveVariable{Name: "A", Attributes: "x", Value: "b"})
	for _, name := range []string{"RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "BASHPID"} {
		assert.True(t, slices.ContainsFunc(live.Variables, func(v command.LiveVariable) bool { return v.Name == name }), "what bash makes itself is there: %s", name)
	}
	assert.NotEmpty(t, live.Libraries)
	assert.NotContains(t, live.Descriptors, 3)
	res, err := sh.Run(ctx, "echo $? $PWD; unset -f f")
	require.NoError(t, err)
	assert.Equal(t, "3 /tmp\n", string(res.Stdout.Bytes()), "a look leaves no trace")
	_, err = sh.Run(ctx, "exec 3</dev/null")
	require.NoError(t, err)
	live, err = sh.Live(ctx)
	require.NoError(t, err)
	assert.Empty(t, live.Functions)
	assert.Contains(t, live.Descriptors, 3)
	_, err = start(t, &shell.Options{Transport: elsewhere{}}).Live(ctx)
	require.ErrorContains(t, err, "cannot be told")
	require.NoError(t, sh.Close())
	_, err = sh.Live(ctx)
	require.Error(t, err)
}

// Renewed is told before anything runs with the other state.
func TestRenewedIsToldOfResetAndRestore(t *testing.T) {
	ctx := testenv.Context(t)
	told := 0
	sh := start(t, &shell.Options{Hooks: shell.Hooks{Renewed: func() { told++ }}})
	state, err := sh.Checkpoint(ctx)
	require.NoError(t, err)
	require.Zero(t, told)
	require.NoError(t, sh.Reset(ctx))
	require.Equal(t, 1, told)
	_, err = sh.Restore(ctx, state)
	require.NoError(t, err)
	require.Equal(t, 2, told)
}
