package page

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A body that does not come whole is refused in words that are no secret of the connection.
func TestABodyThatDoesNotComeWholeIsRefused(t *testing.T) {
	const patience = 50 * time.Millisecond
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit := patience
		if r.URL.Path == "/ends" {
			limit = time.Minute
		}
		_, status, err := readBody(w, r, limit)
		refuse(w, status, err.Error())
	}))
	t.Cleanup(server.Close)
	addr := server.Listener.Addr().String()
	for path, want := range map[string]struct {
		status int
		says   string
	}{
		"/stalls": {http.StatusRequestTimeout, "of the 20 bytes that were announced 2 came within 50ms: send it again"},
		"/ends":   {http.StatusBadRequest, "of the 20 bytes that were announced 2 came: send it again"},
	} {
		conn, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		_, err = io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{}")
		require.NoError(t, err)
		if path == "/ends" {
			require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		assert.Equal(t, want.status, answer.StatusCode)
		assert.Contains(t, string(body), want.says)
		assert.NotContains(t, string(body), "127.0.0.1")
	}
}
