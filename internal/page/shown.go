package page

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/limpet-sh/limpet/terminal"
)

// Where a proxy lets no WebSocket through, a terminal is shown by a stream: GET /api/terminal?session=NAME&id=ID, with the token in
// Authorization, as for everything else. It has the messages of socket.go that go to the browser, one JSON object a line, and instead of binary ones
//
//	{"kind": "output", "offset", "text"}    text is base64, offset the one behind it
//
// Nothing can be typed. The browser says nothing of what it has shown: it reads no further until it has. When its connection takes no more,
// the terminal goes on, what leaves its buffer meanwhile is missed, and a screen comes instead; after readPatience the connection is cut.

// shown writes the messages of a view to a stream. It is safe for concurrent use.
type shown struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	rc   *http.ResponseController
	life context.Context // cuts what is being written
}

// output is what a terminal has printed.
type output struct {
	Kind   string `json:"kind"` // output
	Offset int64  `json:"offset"`
	Text   []byte `json:"text"` // as base64: it may be no UTF-8
}

// send writes a message of the WebSocket's.
func (s *shown) send(kind websocket.MessageType, b []byte) error {
	if kind == websocket.MessageBinary {
		var err error
		if b, err = json.Marshal(output{"output", int64(binary.BigEndian.Uint64(b)), b[8:]}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.rc.SetWriteDeadline(time.Now().Add(readPatience)); err != nil {
		return err
	}
	defer context.AfterFunc(s.life, func() { _ = s.rc.SetWriteDeadline(time.Unix(1, 0)) })() // The connection may be closed.
	if _, err := s.w.Write(append(b, '\n')); err != nil {
		return err
	}
	return s.rc.Flush()
}

// isSocket reports whether a request opens the WebSocket, whose token is in its first message.
func isSocket(r *http.Request) bool {
	return r.URL.Path == terminalPath && strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// stream shows a terminal by a stream, until either side ends it. The token was found to allow that, for as long as the request lives.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, as rights) {
	first := opening{Session: r.URL.Query().Get("session"), Terminal: r.URL.Query().Get("id")}
	if !validName(first.Session) || !terminal.ValidID(first.Terminal) {
		refuse(w, http.StatusBadRequest, "name a session and a terminal: /api/terminal?session=NAME&id=ID")
		return
	}
	if err := h.sit(as); err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	defer h.rise(as)
	w.Header().Set("Content-Type", "application/x-ndjson")
	ctx, stop := context.WithCancelCause(r.Context())
	defer stop(nil)
	defer context.AfterFunc(h.life, func() { stop(errHungUp) })()
	v := &view{
		h: h, as: as, of: first.Session, key: first.Session + "\x00" + first.Terminal, ctx: ctx, stop: stop,
		out:   &shown{w: w, rc: http.NewResponseController(w), life: r.Context()},
		acked: make(chan struct{}, 1), again: make(chan struct{}, 1),
	}
	over := v.run(first)
	if over != nil && r.Context().Err() == nil {
		_ = v.tell(*over) // The browser may be gone.
	}
}
