package remote_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/remote"
	"github.com/limpet-sh/limpet/session"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

// target is a machine with an environment, and so sessions, of its own.
func target(t *testing.T) string {
	t.Helper()
	return "exec:env -i GORACE=atexit_sleep_ms=0 HOME=" + testenv.TempDir(t) + " sh"
}

func dial(t *testing.T, target string) *remote.Host {
	t.Helper()
	h, err := remote.Dial(testenv.Context(t), target)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

func TestASessionStaysWhenTheConnectionEnds(t *testing.T) {
	testenv.Slow(t)
	ctx := testenv.Context(t)
	target := target(t)
	h := dial(t, target)
	s, err := h.Open(ctx, "b", &remote.Options{Dir: "/tmp"})
	require.NoError(t, err)
	assert.True(t, s.Made())
	assert.Empty(t, s.Last())
	_, err = s.Run(ctx, "x=1")
	require.NoError(t, err)
	temporary, err := h.Open(ctx, "t", &remote.Options{Temporary: true})
	require.NoError(t, err)
	assert.True(t, temporary.Made())
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())

	h = dial(t, target)
	list, err := h.List(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "b", list[0].Name)
	s, err = h.Open(ctx, "b", &remote.Options{Existing: true})
	require.NoError(t, err)
	res, err := s.Run(ctx, "echo $PWD $x")
	require.NoError(t, err)
	assert.Equal(t, "/tmp 1\n", res.Stdout.String())
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err = h.Open(ctx, "b", &remote.Options{Existing: true})
	require.ErrorIs(t, err, session.ErrNotFound)
	s, err = h.Open(ctx, "b", nil)
	require.NoError(t, err)
	assert.Equal(t, "was closed; it was in /tmp", s.Last())
	require.NoError(t, s.Close())
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	_, err := remote.Dial(testenv.Context(t), "nowhere")
	require.ErrorIs(t, err, remote.ErrTarget)
	_, err = remote.Dial(testenv.Context(t), "exec:false")
	require.ErrorIs(t, err, remote.ErrUnreached)
	said, ok := err.(*remote.Error)
	require.True(t, ok)
	assert.Equal(t, "exec:false", said.Target)
}

func Example() {
	home, err := os.MkdirTemp("", "there")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(home) // It is one for this example.

	ctx := context.Background()
	h, err := remote.Dial(ctx, "exec:env -i GORACE=atexit_sleep_ms=0 HOME="+home+" sh") // exec:limactl shell dev sh
	if err != nil {
		panic(err)
	}
	defer h.Close() // The session stays.
	s, err := h.Open(ctx, "build", &remote.Options{Dir: "/usr"})
	if err != nil {
		panic(err)
	}
	if _, err := s.Run(ctx, "cd lib; x=1"); err != nil {
		panic(err)
	}
	res, err := s.Run(ctx, "echo x is $x in $PWD")
	if err != nil {
		panic(err)
	}
	fmt.Print(res.Stdout)
	if err := s.Close(); err != nil {
		panic(err)
	}
	// Output: x is 1 in /usr/lib
}
