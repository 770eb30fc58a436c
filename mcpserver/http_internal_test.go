package mcpserver

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/session"
)

// quiet is a server with a tool that answers when it is let.
func quiet(t *testing.T, answer func() error) *httptest.Server {
	sessions, err := session.New(nil)
	require.NoError(t, err)
	s, err := New(sessions, nil)
	require.NoError(t, err)
	s.mcp.AddTool(&mcp.Tool{Name: "quiet", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "answer"}}}, answer()
	})
	listening := httptest.NewServer(s.handler("token", time.Millisecond))
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		listening.Close()
		assert.NoError(t, sessions.Close())
	})
	return listening
}

// post sends a message in the new era, and returns the answer before it is read.
func post(t *testing.T, to *httptest.Server, method, name, params string) *http.Response {
	message := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}` + params + `}}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to.URL, strings.NewReader(message))
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Authorization": "Bearer token", "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		req.Header.Set(name, value)
	}
	res, err := to.Client().Do(req)
	require.NoError(t, err)
	t.Cleanup(func() { _ = res.Body.Close() }) // Read only.
	return res
}

func TestASilentCallSaysThatItLives(t *testing.T) {
	let := make(chan struct{})
	to := quiet(t, func() error { <-let; return nil })
	res := post(t, to, "tools/call", "quiet", `,"name":"quiet"`) // The headers are there before the answer.
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, eventStream, res.Header.Get("Content-Type"))
	body := bufio.NewReader(res.Body)
	for range 2 {
		comment := make([]byte, 3)
		_, err := io.ReadFull(body, comment)
		require.NoError(t, err)
		assert.Equal(t, ":\n\n", string(comment))
	}
	close(let)
	rest, err := io.ReadAll(body)
	require.NoError(t, err)
	assert.Regexp(t, `^(:\n\n)*event: message\ndata: \{.*"text":"answer".*\}\n\n(:\n\n)*$`, string(rest))
}

// Then it is too late for another status.
func TestAnErrorAfterALongTimeIsAnEvent(t *testing.T) {
	let := make(chan struct{})
	to := quiet(t, func() error { <-let; return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "bad"} })
	res := post(t, to, "tools/call", "quiet", `,"name":"quiet"`)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	close(let)
	rest, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	assert.Regexp(t, `^(:\n\n)+event: message\ndata: \{.*"code":-32602,"message":"bad".*\}\n\n(:\n\n)*$`, string(rest))
}

func TestAnErrorAtOnceHasItsStatus(t *testing.T) {
	sessions, err := session.New(nil)
	require.NoError(t, err)
	s, err := New(sessions, nil)
	require.NoError(t, err)
	to := httptest.NewServer(s.Handler("token"))
	t.Cleanup(func() {
		assert.NoError(t, s.Close())
		to.Close()
		assert.NoError(t, sessions.Close())
	})
	assert.Equal(t, http.StatusBadRequest, post(t, to, "tools/call", "none", `,"name":"none"`).StatusCode)
	res := post(t, to, "no/such", "", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
	assert.Equal(t, "application/json", res.Header.Get("Content-Type"))
}

func TestARequestIsNotAnsweredBeforeItIsThere(t *testing.T) {
	body := &endOfBody{ReadCloser: io.NopCloser(strings.NewReader("{}"))}
	rec := httptest.NewRecorder()
	w := newLiveWriter(rec, body, time.Hour)
	w.live()
	assert.False(t, rec.Flushed)
	_, err := io.ReadAll(body)
	require.NoError(t, err)
	w.live()
	assert.Equal(t, ":\n\n", rec.Body.String())
	w.end()
	w.live() // Its timer had fired.
	assert.Equal(t, ":\n\n", rec.Body.String())
	assert.Equal(t, eventStream, rec.Header().Get("Content-Type"))
}

func TestAnAnswerThatIsNoStreamIsLeftAlone(t *testing.T) {
	body := &endOfBody{ReadCloser: http.NoBody}
	body.ended.Store(true)
	rec := httptest.NewRecorder()
	w := newLiveWriter(rec, body, time.Hour)
	http.Error(w, "no", http.StatusTeapot)
	w.live()
	w.end()
	assert.Equal(t, http.StatusTeapot, rec.Code)
	assert.Equal(t, "no\n", rec.Body.String())
}

func TestCallsOfOneClientAreCancelled(t *testing.T) {
	var calls httpCalls
	var cancelled []error
	begin := func(id string) (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(t.Context())
		done := calls.add(id, &cancel)
		return ctx, func() {
			done()
			cancelled = append(cancelled, context.Cause(ctx))
			cancel(nil)
		}
	}
	_, endOne := begin("one")
	_, endTwo := begin("two")
	left := calls.ending("one")
	_, endLate := begin("one")
	endLate()
	left()
	endOne()
	_, endNext := begin("one") // It does not leave.
	endNext()
	endTwo()
	assert.Equal(t, []error{errClientGone, errClientGone, nil, nil}, cancelled)
	assert.Empty(t, calls.clients)
}
