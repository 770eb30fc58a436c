package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
)

// Sessions are what a [Handler] serves: those of a program.
type Sessions interface {
	// Get returns the session of that name; session.ErrNotFound where there is none.
	Get(ctx context.Context, name string) (session.Handle, error)

	// List returns what is known of them.
	List(ctx context.Context) ([]session.Info, error)
}

// Handler answers requests about sessions. Its methods are safe for concurrent use. Close it, before
// the sessions or after them.
type Handler struct {
	// Noted, if not nil, is told when a command is asked for, and when one has ended: which one is
	// the first now of those that have not, and where the session is; empty if that is not known.
	// It is called in the way of commands, by several goroutines, one at a time.
	Noted func(script, dir string)

	// Journal, if not nil, remembers the commands that came with an id of their caller's own.
	Journal Journal

	// Closing, if not nil, reports whether the program is about to end what it has: who asks whether
	// it can be spoken to is told that it is closed.
	Closing func() bool

	// Agent, if not nil, serves an agent on a connection, until one of the two ends that, or ctx.
	// The options are the agent's.
	Agent func(ctx context.Context, s session.Handle, options json.RawMessage, conn net.Conn)

	sessions Sessions
	hello    Hello
	book     *book
	gate     gate
	mux      *http.ServeMux

	mu        sync.Mutex
	closed    bool
	terminals map[*terminal.Registry]http.Handler
	agents    map[string]int // that use a session, by its name
	attached  sync.WaitGroup // all of them
	agentLife context.Context
	endAgents context.CancelCauseFunc
}

// NewHandler returns a handler for sessions.
func NewHandler(sessions Sessions, hello Hello) *Handler {
	hello.Protocol = [2]int{Version, Version}
	h := &Handler{sessions: sessions, hello: hello, mux: http.NewServeMux(), terminals: make(map[*terminal.Registry]http.Handler), agents: make(map[string]int)}
	h.agentLife, h.endAgents = context.WithCancelCause(context.Background())
	h.book = newBook(func(script, dir string) {
		if h.Noted != nil {
			h.Noted(script, dir)
		}
	}, func() Journal { return h.Journal })
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
	h.addJobs(one)
	for pattern, do := range map[string]struct {
		way    way
		answer answerer
	}{
		"GET " + one:                           {atOnce, (*Handler).getInfo},
		"GET " + one + "/events":               {atOnce, (*Handler).getEvents},
		"GET " + one + "/noticed":              {atOnce, (*Handler).getNoticed},
		"POST " + one + "/interrupt":           {atOnce, (*Handler).postInterrupt},
		"POST " + one + "/background":          {atOnce, (*Handler).postBackground},
		"POST " + one + "/fork":                {turn, (*Handler).postFork},
		"POST " + one + "/upgrade":             {atOnce, (*Handler).postUpgrade}, // It pauses the session itself.
		"POST " + one + "/checkpoint":          {turn, (*Handler).postCheckpoint},
		"POST " + one + "/rollback":            {turn, (*Handler).postRollback},
		"POST " + one + "/reset":               {turn, (*Handler).postReset},
		"POST " + one + "/close":               {atOnce, (*Handler).postClose},
		"POST " + one + "/mcp":                 {atOnce, (*Handler).postAgent},
		"GET " + one + "/commands":             {atOnce, (*Handler).getCommands},
		"GET " + one + "/look":                 {turn, (*Handler).getLook},
		"POST " + one + "/at/{mark}/commands":  {ofCommands, (*Handler).postCommand}, // An older program has no such path, and runs nothing.
		"POST " + one + "/commands":            {ofCommands, (*Handler).postCommand}, // It enters the gate itself.
		"GET " + one + "/commands/{id}":        {ofCommands, (*Handler).getCommand},
		"GET " + one + "/commands/{id}/output": {ofCommands, (*Handler).getOutput},
		"POST " + one + "/commands/{id}/stdin": {ofCommands, (*Handler).postStdin},
		"POST " + one + "/commands/{id}/stop":  {ofCommands, (*Handler).postStop},
	} {
		h.handle(pattern, do.way, do.answer)
	}
}

// answerer answers what is asked of a session. A value is written as JSON; without one and without an error it
// has answered by itself.
type answerer func(h *Handler, s session.Handle, w http.ResponseWriter, r *http.Request) (any, error)

// handle has requests answered about a session.
func (h *Handler) handle(pattern string, when way, do answerer) {
	h.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		s, err := h.sessions.Get(r.Context(), r.PathValue("name"))
		leave := func() {}
		switch {
		case err != nil:
		case when == turn:
			leave, err = h.gate.enter(r.Context(), 0)
		case when == atOnce && h.gate.hasMoved():
			err = ErrMoved
		}
		if err != nil {
			answer(w, nil, err)
			return
		}
		defer leave()
		value, err := do(h, s, w, r)
		if value != nil || err != nil {
			answer(w, value, err)
		}
	})
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Close stops the commands that were asked for, and agents, and waits for them. It is safe to call twice.
func (h *Handler) Close() {
	h.book.close()
	h.EndAgents()
}

// Refuse answers who is not let in.
func Refuse(w http.ResponseWriter, why error) { refuse(w, http.StatusForbidden, why) }

func refuse(w http.ResponseWriter, status int, why error) {
	said, _ := failed(why)
	jsonhttp.Write(w, status, said)
}

// Answer writes a value, or an error, as a Handler does.
func Answer(w http.ResponseWriter, value any, err error) { answer(w, value, err) }

// answer writes a value, or an error, as JSON.
func answer(w http.ResponseWriter, value any, err error) {
	status := http.StatusOK
	if err != nil {
		value, status = failed(err)
	}
	jsonhttp.Write(w, status, value)
}

// done is the answer that there is nothing to tell.
var done = struct{}{}

func (h *Handler) getInfo(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	return s.Info(r.Context())
}

// eventsPatience is how long a request for events is held up: who asks may be gone without a word.
const eventsPatience = 20 * time.Second

// getEvents and getNoticed answer when there are some, or with none.
func (h *Handler) getEvents(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	return eventsOf(s.Events, r)
}

func (h *Handler) getNoticed(s session.Handle, _ http.ResponseWriter, r *http.Request) (any, error) {
	return eventsOf(s.Noticed, r)
}

func eventsOf(events func(ctx context.Context, after int64) ([]session.Event, error), r *http.Request) (any, error) {
	after, err := jsonhttp.Number(r, "after", 0)
	if err != nil {
		return nil, err
	}
	errNone := errors.New("nothing has happened")
	ctx, cancel := context.WithTimeoutCause(r.Context(), eventsPatience, errNone)
	defer cancel()
	list, err := events(ctx, after)
	if errors.Is(err, errNone) {
		return []session.Event{}, nil
	}
	return list, err
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
	if err := jsonhttp.Decode(w, r, mostSmall, &in); err != nil {
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
	if err := jsonhttp.Decode(w, r, mostSmall, &in); err != nil {
		return nil, err
	}
	return done, s.Checkpoint(r.Context(), in.Name)
}

func (h *Handler) postRollback(s session.Handle, w http.ResponseWriter, r *http.Request) (any, error) {
	var in what
	if err := jsonhttp.Decode(w, r, mostSmall, &in); err != nil {
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
