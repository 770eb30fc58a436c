package mcpserver

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// From 2026-07-28 on the protocol has no sessions of its own: each POST stands for itself,
// and a client that hangs up cancels. Before, a client says initialize, gets an
// Mcp-Session-Id, listens by GET, cancels by a notification, and leaves by DELETE. The SDK
// has a handler for each, and the header Mcp-Protocol-Version says which era it is. Both
// offer the same tools and the same sessions of limpet's.

// stateless is the first version of the new era. Versions are dates, and compare as text.
const stateless = "2026-07-28"

const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
	methodListen  = "subscriptions/listen"
)

// maxBody bounds a request: a script may have 1 MB, and six times as much in JSON.
const maxBody = 16 << 20

// bodyTimeout bounds how long a request may take to come.
const bodyTimeout = time.Minute

// clientTimeout is when a client of the old era that said nothing is taken for gone. What
// it has here is next to nothing, and not all clients start anew when they are told that
// they are not known: an editor may sleep over a long weekend.
const clientTimeout = 4 * 24 * time.Hour

// aliveInterval is how often a quiet stream of events says that it lives. Clients give up
// after 5 min of silence (those on Node.js), and proxies after one.
const aliveInterval = 15 * time.Second

// Handler returns a handler that serves any number of clients by streamable HTTP, at
// whatever path it is mounted on. Each request needs the token, as "Authorization: Bearer
// TOKEN"; else the answer is 401. A browser's requests from other sites are refused, and
// so are those that reach a loopback address by another name (DNS rebinding). Sessions
// stay when clients go.
//
// The handler may be asked for twice, and is safe for concurrent use. After Close of the
// server it answers 503. Handler panics if the token is empty: whoever reaches it may run
// commands.
func (s *Server) Handler(token string) http.Handler { return s.handler(token, aliveInterval) }

func (s *Server) handler(token string, alive time.Duration) http.Handler {
	if token == "" {
		panic("mcpserver: Handler without a token: whoever reaches it could run commands")
	}
	h := &httpHandler{server: s, token: sha256.Sum256([]byte(token)), alive: alive}
	same := func(*http.Request) *mcp.Server { return s.mcp }
	h.stateless = mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{
		Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxBody, Logger: s.sdkLogger(),
	})
	h.stateful = mcp.NewStreamableHTTPHandler(same, &mcp.StreamableHTTPOptions{
		SessionTimeout: clientTimeout, MaxRequestBodyBytes: maxBody, Logger: s.sdkLogger(),
	})
	s.mcp.AddReceivingMiddleware(h.calls.middleware)
	sites := http.NewCrossOriginProtection()
	sites.SetDenyHandler(http.HandlerFunc(otherSite))
	return sites.Handler(h)
}

// httpHandler is what is behind the protection from other sites.
type httpHandler struct {
	server              *Server
	token               [sha256.Size]byte // its hash
	alive               time.Duration
	stateless, stateful http.Handler
	calls               httpCalls
}

func (h *httpHandler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !h.knows(req.Header.Get("Authorization")) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="limpet"`)
		hangUp(w)
		http.Error(w, "limpet: the token is missing or wrong: send it as \"Authorization: Bearer TOKEN\"; limpet mcp said at its start where it is", http.StatusUnauthorized)
		return
	}
	answered, ok := h.server.accept(req)
	if !ok {
		http.Error(w, "limpet: the server ends", http.StatusServiceUnavailable)
		return
	}
	defer answered()
	body := &endOfBody{ReadCloser: req.Body, connection: http.NewResponseController(w)}
	_ = body.connection.SetReadDeadline(time.Now().Add(bodyTimeout)) // A writer for tests has none.
	req.Body = body
	live := newLiveWriter(w, body, h.alive)
	defer live.end()
	switch id := req.Header.Get(sessionHeader); {
	case req.Header.Get(versionHeader) >= stateless:
		if isListen(req) {
			ctx, free := h.server.bounded(req.Context())
			defer free()
			req = req.WithContext(ctx)
		}
		h.stateless.ServeHTTP(live, req)
	case req.Method == http.MethodDelete:
		// The SDK waits for the calls of the client that goes.
		defer h.calls.ending(id)()
		h.stateful.ServeHTTP(live, req)
	default:
		h.stateful.ServeHTTP(live, req)
	}
}

// accept counts a request that ends by itself when calls are cancelled, so that its answer
// is still sent when the server is closed. It reports false if that is so already.
func (s *Server) accept(req *http.Request) (answered func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return nil, false
	case req.Method != http.MethodPost || isListen(req):
		return func() {}, true
	}
	s.answering.Add(1)
	return s.answering.Done, true
}

// isListen reports whether the request goes on for as long as its client likes.
func isListen(req *http.Request) bool { return req.Header.Get(methodHeader) == methodListen }

// knows reports whether the header has the token. It takes as long whatever is wrong.
func (h *httpHandler) knows(header string) bool {
	scheme, token, _ := strings.Cut(header, " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(token)))
	return subtle.ConstantTimeCompare(sum[:], h.token[:]) == 1 && strings.EqualFold(scheme, "Bearer")
}

// hangUp has the connection closed behind the answer, without the rest of the request: who
// may not ask may not hold it open either.
func hangUp(w http.ResponseWriter) {
	w.Header().Set("Connection", "close")
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // A writer for tests has none.
}

func otherSite(w http.ResponseWriter, _ *http.Request) {
	hangUp(w)
	http.Error(w, "limpet: a page of another site asked for this, and is refused: use a client that is no web page, or one behind the same origin", http.StatusForbidden)
}
