package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/limpet-sh/limpet/session"
)

// Sessions are what a [Handler] serves: those of a program.
type Sessions interface {
	// Get returns the session of that name; session.ErrNotFound where there is none.
	Get(ctx context.Context, name string) (session.Handle, error)

	// List returns what is known of them.
	List(ctx context.Context) ([]session.Info, error)
}

// bodyPatience is the time that a client has to send what comes with a request, and to take an
// answer that is no stream.
const bodyPatience = 30 * time.Second

// Handler answers requests about sessions. Its methods are safe for concurrent use. Close it, before
// the sessions or after them.
type Handler struct {
	// Noted, if not nil, is told when a command is asked for, and when one has ended: which one is
	// the first now of those that have not, and where the session is; empty if that is not known.
	// It is called in the way of commands, by several goroutines.
	Noted func(script, dir string)

	// Closing, if not nil, reports whether the program is about to end what it has: who asks whether
	// it can be spoken to is told that it is closed.
	Closing func() bool

	sessions Sessions
	hello    Hello
	book     *book
	gate     gate
	mux      *http.ServeMux
}

// NewHandler returns a handler for sessions.
func NewHandler(sessions Sessions, hello Hello) *Handler {
	hello.Protocol = [2]int{Version, Version}
	h := &Handler{sessions: sessions, hello: hello, mux: http.NewServeMux()}
	h.book = newBook(func(script, dir string) {
		if h.Noted != nil {
			h.Noted(script, dir)
		}
	})
	h.mux.HandleFunc("GET /v1", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case h.gate.hasMoved():
			answer(w, nil, ErrMoved)
		case h.Closing != nil && h.Closing():
			answer(w, nil, session.ErrClosed)
		default:
			answer(w, h.hello, nil)
		}
	})
	h.mux.HandleFunc("GET /v1/sessions", func(w http.ResponseWriter, r *http.Request) {
		list, err := h.sessions.List(r.Context())
		answer(w, list, err)
	})
	h.serveSession()
	h.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("there is no %s %s here; this is version %d of the protocol", r.Method, r.URL.Path, Version))
	})
	return h
}

// way says when a request about a session is answered.
type way int

const (
	atOnce     way = iota
	turn           // when the session is not paused: it waits for the shell
	ofCommands     // also when the session has moved: a command may have run here
)

// serveSession has the mux answer what is asked of a session.
func (h *Handler) serveSession() {
	const one = "/v1/sessions/{name}"
	for pattern, do := range map[string]struct {
		way    way
		method func(h *Handler, s session.Handle, w http.ResponseWriter, r *http.Request) (any, error)
	}{
		"GET " + one:                           {atOnce, (*Handler).getInfo},
		"POST " + one + "/interrupt":           {atOnce, (*Handler).postInterrupt},
		"POST " + one + "/background":          {atOnce, (*Handler).postBackground},
		"POST " + one + "/fork":                {turn, (*Handler).postFork},
		"POST " + one + "/upgrade":             {atOnce, (*Handler).postUpgrade}, // It pauses the session itself.
		"POST " + one + "/checkpoint":          {turn, (*Handler).postCheckpoint},
		"POST " + one + "/rollback":            {turn, (*Handler).postRollback},
		"POST " + one + "/reset":               {turn, (*Handler).postReset},
		"POST " + one + "/close":               {atOnce, (*Handler).postClose},
		"GET " + one + "/commands":             {atOnce, (*Handler).getCommands},
		"POST " + one + "/commands":            {ofCommands, (*Handler).postCommand}, // It enters the gate itself.
		"GET " + one + "/commands/{id}":        {ofCommands, (*Handler).getCommand},
		"GET " + one + "/commands/{id}/output": {ofCommands, (*Handler).getOutput},
		"POST " + one + "/commands/{id}/stdin": {ofCommands, (*Handler).postStdin},
		"POST " + one + "/commands/{id}/stop":  {ofCommands, (*Handler).postStop},
	} {
		h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			s, err := h.sessions.Get(r.Context(), r.PathValue("name"))
			leave := func() {}
			switch {
			case err != nil:
			case do.way == turn:
				leave, err = h.gate.enter(r.Context(), 0)
			case do.way == atOnce && h.gate.hasMoved():
				err = ErrMoved
			}
			if err != nil {
				answer(w, nil, err)
				return
			}
			defer leave()
			value, err := do.method(h, s, w, r)
			if value != nil || err != nil {
				answer(w, value, err)
			}
		})
	}
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Close stops the commands that were asked for, and waits for them. It is safe to call twice.
func (h *Handler) Close() { h.book.close() }

// Refuse answers who is not let in.
func Refuse(w http.ResponseWriter, why error) { refuse(w, http.StatusForbidden, why) }

func refuse(w http.ResponseWriter, status int, why error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	said, _ := failed(why)
	writeJSON(w, said)
}

// answer writes a value, or an error, as JSON.
func answer(w http.ResponseWriter, value any, err error) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyPatience)) // A connection has deadlines.
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		said, status := failed(err)
		w.WriteHeader(status)
		value = said
	}
	writeJSON(w, value)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // As above.
}

func writeJSON(w io.Writer, value any) {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false) // It is for programs.
	_ = enc.Encode(value)    // Who went away misses nothing.
}

// body reads what came with a request, at once and whole.
func body(w http.ResponseWriter, r *http.Request, most int64) ([]byte, error) {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyPatience)) // A connection has deadlines.
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	_ = control.SetReadDeadline(time.Time{}) // As above.
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, most)
	}
	return b, err
}

func bodyJSON(w http.ResponseWriter, r *http.Request, most int64, value any) error {
	b, err := body(w, r, most)
	if err != nil || len(b) == 0 {
		return err
	}
	if err := json.Unmarshal(b, value); err != nil {
		return fmt.Errorf("what came with it is not what it should be: %w", err)
	}
	return nil
}

// parameter is a number in the address; otherwise is what it is without.
func parameter(r *http.Request, name string, otherwise int64) (int64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s=%.40q: wants a number", name, text)
	}
	return n, nil
}

// done is the answer that there is nothing to tell.
var done = struct{}{}

func (h *Handler) getInfo(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	return s.Info(r.Context())
}

// ran is the answer of interrupt.
type ran struct {
	Ran bool `json:"ran"`
}

func (h *Handler) postInterrupt(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	did, err := s.Interrupt(r.Context())
	return ran{did}, err
}

func (h *Handler) postBackground(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	return done, s.HandOver(r.Context())
}

func (h *Handler) postFork(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	var in what
	if err := bodyJSON(w, r, mostSmall, &in); err != nil {
		return nil, err
	}
	fork, err := s.Fork(r.Context(), in.Name)
	if err != nil {
		return nil, err
	}
	if far, ok := fork.(interface{ Disconnect() }); ok { // It is of a program of its own, which the client asks from now on.
		defer far.Disconnect()
	}
	return fork.Info(r.Context())
}

func (h *Handler) postCheckpoint(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	var in what
	if err := bodyJSON(w, r, mostSmall, &in); err != nil {
		return nil, err
	}
	return done, s.Checkpoint(r.Context(), in.Name)
}

func (h *Handler) postRollback(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	var in what
	if err := bodyJSON(w, r, mostSmall, &in); err != nil {
		return nil, err
	}
	res, err := s.Rollback(r.Context(), in.Name)
	if err != nil {
		return nil, err
	}
	return rolledBack{restartOf(res)}, nil
}

// rolledBack is the answer of rollback.
type rolledBack struct {
	Restart *restart `json:"restart"`
}

func (h *Handler) postReset(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	return done, s.Reset(r.Context())
}

func (h *Handler) postClose(s session.Handle, _ http.ResponseWriter, _ *http.Request) (any, error) {
	return done, s.Close()
}
