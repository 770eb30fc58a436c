package mcpserver_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
)

const secret = "a-token-for-tests"

// eras are the versions of the protocol that differ in how HTTP is used.
var eras = []string{"2025-11-25", "2026-07-28"}

// served is a server that listens.
type served struct {
	t        *testing.T
	sessions *session.Registry
	server   *mcpserver.Server
	url      string
}

func serveHTTP(t *testing.T) *served {
	t.Helper()
	sessions, err := session.New(nil)
	require.NoError(t, err)
	server, err := mcpserver.New(sessions, &mcpserver.Options{Structured: true, Progress: time.Millisecond})
	require.NoError(t, err)
	listening := httptest.NewServer(server.Handler(secret))
	t.Cleanup(func() {
		assert.NoError(t, server.Close())
		listening.Close()
		assert.NoError(t, sessions.Close())
	})
	return &served{t, sessions, server, listening.URL}
}

// authorized adds the token to requests.
type authorized struct {
	http.RoundTripper
	token string
}

func (a authorized) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+a.token)
	return a.RoundTripper.RoundTrip(req)
}

// client is one that speaks a version of the protocol.
type client struct {
	t *testing.T
	*mcp.ClientSession
}

func (s *served) connect(era, token string, opts *mcp.ClientOptions) (*mcp.ClientSession, error) {
	transport := &http.Transport{}
	s.t.Cleanup(transport.CloseIdleConnections)
	return mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, opts).Connect(s.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: s.url, HTTPClient: &http.Client{Transport: authorized{transport, token}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: era})
}

func (s *served) client(era string, opts *mcp.ClientOptions) *client {
	s.t.Helper()
	c, err := s.connect(era, secret, opts)
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = c.Close() }) // The server may be closed.
	return &client{s.t, c}
}

// ran is what is looked at of a result.
type ran struct {
	Status    string `json:"status"`
	StoppedBy string `json:"stopped_by"`
	Stdout    string `json:"stdout"`
}

func (c *client) call(ctx context.Context, script string, token any) (ran, error) {
	params := &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": script}}
	if token != nil {
		params.SetProgressToken(token)
	}
	res, err := c.CallTool(ctx, params)
	if err != nil {
		return ran{}, err
	}
	b, err := json.Marshal(res.StructuredContent)
	require.NoError(c.t, err)
	var out ran
	require.NoError(c.t, json.Unmarshal(b, &out))
	return out, nil
}

func (c *client) run(script string) ran {
	c.t.Helper()
	out, err := c.call(testenv.Context(c.t), script, nil)
	require.NoError(c.t, err)
	return out
}

// background starts a job, and returns the resource of its log.
func (c *client) background(script string) string {
	c.t.Helper()
	res, err := c.CallTool(testenv.Context(c.t), &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": script, "background": true}})
	require.NoError(c.t, err)
	return "limpet://jobs/" + structured(c.t, res)["job"].(object)["job"].(string) + "/log"
}

// hanging is a command that has begun when the file is there, and hangs.
func hanging(begun string) string { return "echo >" + begun + "; tail -f /dev/null; echo went on" }

func TestBothErasOfHTTPShareSessions(t *testing.T) {
	s := serveHTTP(t)
	for _, era := range eras {
		one := s.client(era, nil)
		assert.Equal(t, era, one.InitializeResult().ProtocolVersion)
		one.run("cd /; x=" + era)
		require.NoError(t, one.Close())
		for _, other := range eras {
			assert.Equal(t, era+" /\n", s.client(other, nil).run("echo $x $PWD").Stdout, other)
		}
	}
}

func TestProgressComesOverHTTP(t *testing.T) {
	s := serveHTTP(t)
	for _, era := range eras {
		told := make(chan *mcp.ProgressNotificationParams, 1000)
		c := s.client(era, &mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			select {
			case told <- req.Params:
			default: // Enough is there.
			}
		}})
		file := filepath.Join(t.TempDir(), "go")
		done := make(chan ran)
		go func() {
			out, err := c.call(testenv.Context(t), "echo working; until [[ -e "+file+" ]]; do sleep 0.01; done; echo done", "token")
			assert.NoError(t, err)
			done <- out
		}()
		for news := range told {
			assert.Equal(t, "token", news.ProgressToken)
			if strings.HasSuffix(news.Message, "working") {
				break
			}
		}
		require.NoError(t, os.WriteFile(file, nil, 0o600))
		assert.Equal(t, "working\ndone\n", (<-done).Stdout, era)
	}
}

func TestCancelOverHTTPStopsTheCommandAndKeepsTheSession(t *testing.T) {
	s := serveHTTP(t)
	for _, era := range eras {
		c := s.client(era, nil)
		c.run("x=" + era)
		begun := filepath.Join(t.TempDir(), "begun")
		ctx, cancel := context.WithCancel(testenv.Context(t))
		done := make(chan error)
		go func() {
			_, err := c.call(ctx, hanging(begun), nil)
			done <- err
		}()
		testenv.AwaitFile(t, begun)
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
		assert.Equal(t, era+"\n", c.run("echo $x").Stdout) // It waits for its turn.
	}
}

func TestAClientThatLeavesTakesItsCallsAlong(t *testing.T) {
	s := serveHTTP(t)
	c := s.client(eras[0], nil)
	begun := filepath.Join(t.TempDir(), "begun")
	done := make(chan error)
	go func() {
		_, err := c.call(testenv.Context(t), hanging(begun), nil)
		done <- err
	}()
	testenv.AwaitFile(t, begun)
	res := s.ask(http.MethodDelete, "", map[string]string{"Mcp-Session-Id": c.ID(), "Mcp-Protocol-Version": eras[0]})
	assert.Equal(t, http.StatusNoContent, res.StatusCode)
	assert.Error(t, <-done) // Who has left gets no answer.
	assert.Equal(t, "free\n", s.client(eras[0], nil).run("echo free").Stdout)
}

func TestCloseEndsCallsAndStreams(t *testing.T) {
	s := serveHTTP(t)
	done := make(chan *mcp.CallToolResult)
	for _, era := range eras {
		c := s.client(era, nil) // The old one listens by GET, the new one by a POST.
		require.NoError(t, c.Subscribe(testenv.Context(t), &mcp.SubscribeParams{URI: c.background("sleep 1000")}))
		begun := filepath.Join(t.TempDir(), "begun")
		go func() {
			res, err := c.CallTool(testenv.Context(t), &mcp.CallToolParams{
				Name: "run_command", Arguments: map[string]any{"command": hanging(begun), "session": era},
			})
			assert.NoError(t, err)
			done <- res
		}()
		testenv.AwaitFile(t, begun)
	}
	require.NoError(t, s.server.Close())
	for _, era := range eras {
		assert.Equal(t, "cancelled", structured(t, <-done)["stopped_by"])
		one, err := s.sessions.Get(era)
		require.NoError(t, err)
		res, err := one.Run(testenv.Context(t), "echo free")
		require.NoError(t, err)
		assert.Equal(t, "free\n", res.Stdout.String())
	}
	require.NoError(t, s.server.Close())
	assert.Equal(t, http.StatusServiceUnavailable, s.ask(http.MethodPost, initialize, nil).StatusCode)
}

// httpAnswer is one to a request, with the whole body.
type httpAnswer struct {
	*http.Response
	body string
}

// ask sends a request with the token, if headers say nothing else.
func (s *served) ask(method, body string, headers map[string]string) httpAnswer {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), testenv.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url, strings.NewReader(body))
	require.NoError(s.t, err)
	for name, value := range map[string]string{
		"Authorization": "Bearer " + secret, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
	} {
		req.Header.Set(name, value)
	}
	for name, value := range headers {
		switch {
		case name == "Host":
			req.Host = value
		case value == "":
			req.Header.Del(name)
		default:
			req.Header.Set(name, value)
		}
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	res, err := transport.RoundTrip(req)
	require.NoError(s.t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(s.t, err)
	return httpAnswer{res, string(b)}
}

// What clients begin with.
const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`
	discover   = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

var modern = map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}

func with(headers map[string]string, name, value string) map[string]string {
	all := maps.Clone(headers)
	all[name] = value
	return all
}

func TestNothingIsAnsweredWithoutTheToken(t *testing.T) {
	s := serveHTTP(t)
	for _, wrong := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + secret + "x", "Bearer " + secret[1:], "Basic " + secret, secret} {
		for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodOptions} {
			for _, version := range []string{"", eras[1]} {
				res := s.ask(method, initialize, map[string]string{"Authorization": wrong, "Mcp-Protocol-Version": version})
				assert.Equal(t, http.StatusUnauthorized, res.StatusCode, "%q %s", wrong, method)
				assert.Equal(t, `Bearer realm="limpet"`, res.Header.Get("WWW-Authenticate"))
				assert.Contains(t, res.body, "Authorization: Bearer TOKEN")
				assert.Empty(t, res.Header.Get("Mcp-Session-Id"))
			}
		}
	}
	for _, right := range []string{"Bearer " + secret, "bearer " + secret, "Bearer  " + secret} {
		assert.Equal(t, http.StatusOK, s.ask(http.MethodPost, initialize, map[string]string{"Authorization": right}).StatusCode, right)
		res := s.ask(http.MethodPost, discover, with(modern, "Authorization", right))
		assert.Equal(t, http.StatusOK, res.StatusCode, "%q: %s", right, res.body)
	}
	for _, era := range eras {
		_, err := s.connect(era, "wrong", nil)
		assert.ErrorContains(t, err, "Unauthorized", era)
	}
}

func TestHandlerWantsAToken(t *testing.T) {
	sessions, err := session.New(nil)
	require.NoError(t, err)
	server, err := mcpserver.New(sessions, nil)
	require.NoError(t, err)
	assert.PanicsWithValue(t, "mcpserver: Handler without a token: whoever reaches it could run commands", func() { server.Handler("") })
	require.NoError(t, server.Close())
	require.NoError(t, sessions.Close())
}

func TestPagesOfOtherSitesAreRefused(t *testing.T) {
	s := serveHTTP(t)
	for _, headers := range []map[string]string{
		{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
		{"Host": "evil.example"}, {"Host": "evil.example", "Origin": "http://evil.example"}, // DNS rebinding
	} {
		for _, version := range []string{"", eras[1]} {
			res := s.ask(http.MethodPost, initialize, with(headers, "Mcp-Protocol-Version", version))
			assert.Equal(t, http.StatusForbidden, res.StatusCode, "%v", headers)
		}
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	for _, headers := range []map[string]string{
		{"Origin": s.url}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Host": "localhost:" + port}, {"Host": "[::1]:" + port},
	} {
		assert.Equal(t, http.StatusOK, s.ask(http.MethodPost, initialize, headers).StatusCode, "%v", headers)
	}
}

func TestMethodsOfBothEras(t *testing.T) {
	s := serveHTTP(t)
	for _, row := range []struct {
		method, body string
		headers      map[string]string
		want         int
	}{
		{http.MethodGet, "", nil, http.StatusBadRequest}, // Of which client?
		{http.MethodGet, "", map[string]string{"Mcp-Session-Id": "unknown"}, http.StatusNotFound},
		{http.MethodDelete, "", nil, http.StatusBadRequest},
		{http.MethodDelete, "", map[string]string{"Mcp-Session-Id": "unknown"}, http.StatusNotFound},
		{http.MethodPut, initialize, nil, http.StatusMethodNotAllowed},
		{http.MethodPost, "no JSON", nil, http.StatusBadRequest},
		{http.MethodPost, initialize, map[string]string{"Mcp-Session-Id": "unknown"}, http.StatusNotFound},
		{http.MethodPost, initialize, map[string]string{"Content-Type": "text/plain"}, http.StatusUnsupportedMediaType},
		{http.MethodPost, initialize, map[string]string{"Mcp-Protocol-Version": "1999-01-01"}, http.StatusBadRequest},
		{http.MethodGet, "", modern, http.StatusMethodNotAllowed},
		{http.MethodDelete, "", modern, http.StatusMethodNotAllowed},
		{http.MethodPost, discover, modern, http.StatusOK},
		{http.MethodPost, strings.ReplaceAll(discover, eras[1], "9999-01-01"), with(modern, "Mcp-Protocol-Version", "9999-01-01"), http.StatusBadRequest},
	} {
		res := s.ask(row.method, row.body, row.headers)
		assert.Equal(t, row.want, res.StatusCode, "%s %v: %s", row.method, row.headers, res.body)
	}
}

func TestABodyThatIsTooLargeIsRefused(t *testing.T) {
	testenv.Slow(t)
	s := serveHTTP(t)
	large := initialize + strings.Repeat(" ", 16<<20)
	for _, headers := range []map[string]string{nil, modern} {
		assert.Equal(t, http.StatusRequestEntityTooLarge, s.ask(http.MethodPost, large, headers).StatusCode)
	}
	c := s.client(eras[1], nil)
	script := "cat <<end | wc -c\n" + strings.Repeat("<", 1<<20) + "\nend"
	assert.Equal(t, "1048577\n", c.run(script).Stdout)
	assert.Equal(t, "1048577\n", s.client(eras[0], nil).run(script).Stdout)
}

// Who has no token holds nothing open, however slowly its request comes.
func TestARequestWithoutTheTokenIsOverAtOnce(t *testing.T) {
	s := serveHTTP(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	require.NoError(t, err)
	defer conn.Close() // The server has.
	require.NoError(t, conn.SetDeadline(time.Now().Add(testenv.Patience)))
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 200\r\n\r\n{")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn) // To the end, though the body never comes.
	require.NoError(t, err)
	assert.Contains(t, string(answer), "401 Unauthorized")
}
