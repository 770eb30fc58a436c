package socket_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

var errOver = errors.New("it is over")

func get(t *testing.T, dir string) (*http.Response, error) {
	t.Helper()
	c := &http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return socket.Dial(ctx, dir, "s") },
		DisableKeepAlives: true,
	}}
	req, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, "http://limpet/", nil)
	require.NoError(t, err)
	return c.Do(req)
}

func TestAPathOfAnyLengthWillDo(t *testing.T) {
	testenv.NeedProc(t)
	dir := filepath.Join(testenv.TempDir(t), strings.Repeat("long/", 50))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	l, err := socket.Listen(dir, "s")
	require.NoError(t, err)
	server := socket.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }), nil)
	server.Serve(l)
	defer server.Close(errOver)
	resp, err := get(t, dir)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	assert.Equal(t, "here", string(b))
	st, err := os.Stat(filepath.Join(dir, "s"))
	require.NoError(t, err)
	assert.Equal(t, os.ModeSocket|socket.Mode, st.Mode())
	assert.NoFileExists(t, filepath.Join(dir, "s"+socket.NewExt))
}

func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	dir := testenv.TempDir(t)
	l, err := socket.Listen(dir, "s")
	require.NoError(t, err)
	begun, why := make(chan struct{}), make(chan error, 1)
	server := socket.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
		why <- context.Cause(r.Context())
	}), nil)
	require.NoError(t, server.Drain(testenv.Context(t)))
	server.Serve(l)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		if resp, err := get(t, dir); err == nil {
			_ = resp.Body.Close() // It is empty.
		}
	}()
	<-begun
	ctx, cancel := context.WithCancelCause(testenv.Context(t))
	cancel(errOver)
	require.ErrorIs(t, server.Drain(ctx), errOver, "one is under way")
	server.Close(errOver)
	server.Close(errOver)
	require.ErrorIs(t, <-why, errOver)
	<-asked
	again, err := socket.Listen(testenv.TempDir(t), "s")
	require.NoError(t, err)
	server.Serve(again) // Nobody is let in any more.
	_, err = again.Accept()
	require.ErrorIs(t, err, net.ErrClosed)
}

func TestAHeaderThatIsTooLargeIsRefused(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	for size, want := range map[int]string{
		30 << 10: "HTTP/1.1 200 OK\r\n",
		40 << 10: "HTTP/1.1 431 Request Header Fields Too Large\r\n", // The server of Go allows 4 KiB more.
	} {
		dir := testenv.TempDir(t)
		l, err := socket.Listen(dir, "s")
		require.NoError(t, err)
		server := socket.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), nil)
		server.Serve(l)
		conn, err := socket.Dial(testenv.Context(t), dir, "s")
		require.NoError(t, err)
		_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: limpet\r\nX: "+strings.Repeat("x", size)+"\r\n\r\n")
		require.NoError(t, err)
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		assert.Equal(t, want, line)
		require.NoError(t, conn.Close())
		server.Close(errOver)
	}
}
