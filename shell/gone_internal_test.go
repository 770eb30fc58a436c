package shell

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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
