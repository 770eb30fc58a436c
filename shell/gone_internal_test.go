package shell

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// A session that is gone says so at once, until it begins anew.
func TestASessionThatIsGoneWantsAReset(t *testing.T) {
	ctx := testenv.Context(t)
	sh, err := Start(ctx, &Options{RuntimeDir: t.TempDir(), Dir: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	state, err := sh.Checkpoint(ctx)
	require.NoError(t, err)
	for _, begin := range []func() error{
		func() error { return sh.Reset(ctx) },
		func() error { _, err := sh.Restore(ctx, state); return err },
	} {
		require.NoError(t, sh.take(ctx))
		sh.endBash((*bash).close)
		sh.bash, sh.died = nil, &death{reason: "bash ended", have: true, gone: true}
		sh.give()
		for range 2 {
			_, err = sh.Run(ctx, "echo no")
			require.ErrorIs(t, err, ErrGone)
			_, err = sh.Checkpoint(ctx)
			require.ErrorIs(t, err, ErrGone)
		}
		require.NoError(t, begin())
		res, err := sh.Run(ctx, "echo ok")
		require.NoError(t, err)
		assert.Equal(t, "ok\n", res.Stdout.String())
	}
}

// hurry gives restores less time. No other test of the package may run meanwhile.
func hurry(t *testing.T, patience, limit time.Duration) {
	t.Helper()
	usualPatience, usualLimit := restorePatience, restoreLimit
	restorePatience, restoreLimit = patience, limit
	t.Cleanup(func() { restorePatience, restoreLimit = usualPatience, usualLimit })
}

// killed starts a shell, runs the scripts in it, makes a file "spoilt" where it is, and kills its bash.
func killed(t *testing.T, opts Options, scripts ...string) *PersistentShell {
	t.Helper()
	ctx := testenv.Context(t)
	opts.RuntimeDir, opts.Dir = t.TempDir(), t.TempDir()
	sh, err := Start(ctx, &opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	for _, script := range scripts {
		_, err := sh.Run(ctx, script)
		require.NoError(t, err)
	}
	_, err = sh.Checkpoint(ctx)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(sh.Dir(), "spoilt"), nil, 0o600))
	require.NoError(t, sh.take(ctx))
	_ = sh.bash.conn.Signal(9) // It is alive.
	<-sh.bash.conn.Done()
	sh.give()
	return sh
}

// However many pieces of a state make bash hang, a restore comes to an end, and begins no second time.
func TestARestoreEnds(t *testing.T) {
	testenv.Slow(t)
	const hangs = "[[ ! -e spoilt ]] || sleep 1000"
	hurry(t, time.Second, 3*time.Second)
	sh := killed(t, Options{}, "x=1; f() { :; }",
		fmt.Sprintf(`PROMPT_COMMAND='%s'; PS0='$(%s)'; PS1='$(%s)'`, hangs, hangs, hangs), fmt.Sprintf(`jobs; trap '%s' DEBUG`, hangs))
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	res, err := sh.Run(ctx, "echo $x $PWD; type -t f")
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 20*time.Second)
	assert.Equal(t, sh.Dir()+"\n", res.Stdout.String())
	require.NotNil(t, res.Restart)
	assert.Equal(t, []string{saved.PieceDir}, res.Restart.Restored, "what there was to restore")
	for _, lost := range []string{"variable x", "function f", "variable PROMPT_COMMAND", "variable PS0", "variable PS1", "trap for DEBUG"} {
		assert.Contains(t, res.Restart.String(), lost)
	}
	res, err = sh.Run(ctx, "echo ok")
	require.NoError(t, err)
	assert.Nil(t, res.Restart)
}

// A bash that takes not even the directory is tried once, and not with every call.
func TestASessionThatNoBashTakesIsGone(t *testing.T) {
	testenv.Slow(t)
	hurry(t, time.Second, 3*time.Second)
	bash, err := exec.LookPath("bash")
	require.NoError(t, err)
	dir := t.TempDir()
	spoilt, wrapper := filepath.Join(dir, "spoilt"), filepath.Join(dir, "bash")
	// Of the lines that limpet sends, only the one that has bash read a state discards its output. This
	// bash exits instead of running that line.
	require.NoError(t, os.WriteFile(wrapper, fmt.Appendf(nil, `#!%s
[[ -e %s ]] || exec %s "$@"
exec %s "$@" < <(sed -u 's:.*/eval >/dev/null 2>&1;.*:exit 3:')
`, bash, spoilt, bash, bash), 0o700))
	sh := killed(t, Options{Bash: wrapper}, "x=1")
	require.NoError(t, os.WriteFile(spoilt, nil, 0o600))
	ctx := testenv.Context(t)
	res, err := sh.Run(ctx, "echo no")
	require.ErrorIs(t, err, ErrGone)
	assert.Contains(t, err.Error(), "Reset")
	assert.Equal(t, command.CodeUnknown, res.ExitCode)
	began := time.Now()
	for range 20 {
		_, err = sh.Run(ctx, "echo no")
		require.ErrorIs(t, err, ErrGone)
	}
	assert.Less(t, time.Since(began), time.Second, "it does not start over")
	require.NoError(t, os.Remove(spoilt))
	require.NoError(t, sh.Reset(ctx))
	res, err = sh.Run(ctx, "echo ok $x")
	require.NoError(t, err)
	assert.Equal(t, "ok\n", res.Stdout.String())
}
