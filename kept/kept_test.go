package kept_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/kept"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // It cannot fail. Else a keeper sleeps for a second when it exits.
	os.Exit(testenv.Main(m))
}

func TestSessionsKeepThePromises(t *testing.T) {
	sessiontest.RunCore(t, func(t *testing.T) session.Handle {
		s, err := kept.Open(testenv.Context(t), "s", &kept.Options{Dir: testenv.TempDir(t), StateDir: testenv.TempDir(t)})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() }) // The test may have closed it.
		return s
	})
}

func TestOptionsAreForASessionThatIsMade(t *testing.T) {
	ctx, dir := testenv.Context(t), testenv.TempDir(t)
	_, err := kept.Open(ctx, "one", &kept.Options{StateDir: dir, Existing: true})
	require.ErrorIs(t, err, session.ErrNotFound)
	_, err = kept.Open(ctx, "a/b", &kept.Options{StateDir: dir})
	require.ErrorIs(t, err, session.ErrName)

	t.Chdir(testenv.TempDir(t))
	require.NoError(t, os.WriteFile("init", []byte("f() { echo from init; }\n"), 0o600))
	require.NoError(t, os.Mkdir("sub", 0o700))
	s, err := kept.Open(ctx, "one", &kept.Options{StateDir: dir, Dir: "sub", Env: []string{"E=exported", "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}, InitFiles: []string{"init"}})
	require.NoError(t, err)
	assert.True(t, s.Made())
	assert.Empty(t, s.Last())
	res, err := s.Run(ctx, `f; echo "$E ${PWD##*/} ${HOME-none}"`)
	require.NoError(t, err)
	assert.Equal(t, "from init\nexported sub none\n", res.Stdout.String())
	s.Disconnect()
	s.Disconnect()
	_, err = s.Run(ctx, "true")
	require.ErrorIs(t, err, session.ErrClosed)

	s, err = kept.Open(ctx, "one", &kept.Options{StateDir: dir, Existing: true})
	require.NoError(t, err)
	assert.False(t, s.Made())
	require.NoError(t, s.Close())
	s.Disconnect()

	s, err = kept.Open(ctx, "one", &kept.Options{StateDir: dir})
	require.NoError(t, err)
	assert.Contains(t, s.Last(), "was closed; it was in "+filepath.Join(mustGetwd(t), "sub"))
	require.NoError(t, s.Close())
}

func mustGetwd(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	require.NoError(t, err)
	return dir
}
