package session_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // It cannot fail. Else a supervisor sleeps for a second when it exits.
	os.Exit(testenv.Main(m))
}

// registry returns a registry that ends with the test, and leaves nothing behind.
func registry(t *testing.T, opts *session.Options) *session.Registry {
	t.Helper()
	own := session.Options{}
	if opts != nil {
		own = *opts
	}
	if own.Shell == nil {
		own.Shell = &shell.Options{Dir: testenv.TempDir(t)}
	}
	if own.Shell.RuntimeDir == "" {
		own.Shell.RuntimeDir = testenv.TempDir(t)
	}
	r, err := session.New(&own)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, r.Close())
		left, err := os.ReadDir(own.Shell.RuntimeDir)
		require.NoError(t, err)
		for _, entry := range left { // limpet-UID stays, empty.
			inner, err := os.ReadDir(own.Shell.RuntimeDir + "/" + entry.Name())
			require.NoError(t, err)
			require.Empty(t, inner, "left in %s", entry.Name())
		}
	})
	return r
}

func open(t *testing.T, r *session.Registry, name string) *session.Session {
	t.Helper()
	s, err := r.Open(testenv.Context(t), name, nil)
	require.NoError(t, err)
	return s
}

func info(t *testing.T, s session.Handle) session.Info {
	t.Helper()
	info, err := s.Info(testenv.Context(t))
	require.NoError(t, err)
	return info
}

func run(t *testing.T, s session.Handle, script string) command.Result {
	t.Helper()
	res, err := s.Run(testenv.Context(t), script)
	require.NoError(t, err, script)
	return res
}

// says runs a script and returns its stdout without the last newline.
func says(t *testing.T, s session.Handle, script string) string {
	t.Helper()
	return strings.TrimSuffix(run(t, s, script).Stdout.String(), "\n")
}
