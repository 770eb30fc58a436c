package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
)

const (
	// freshFor is how long an answer is given to others who ask the same.
	freshFor = time.Second

	// askPatience bounds how long sessions are asked for an answer.
	askPatience = 10 * time.Second

	// mostAsked bounds how many different questions are asked at a time: of one share link, of all of them, and with the owner's.
	mostAskedByOne, mostAskedByShares, mostAsked = 16, 40, 64
)

// memo has the last answers, by what was asked: however many browsers ask, sessions are asked about once a second.
type memo struct {
	mu      sync.Mutex
	answers map[string]*answer
}

// answer is one that is there, or is being asked for.
type answer struct {
	by     *share        // that asked first; nil for the owner
	done   chan struct{} // closed when the following are set
	at     time.Time
	status int
	kind   string // its Content-Type
	body   []byte
}

// isOld reports whether an answer is there, and not fresh any more.
func (a *answer) isOld() bool {
	select {
	case <-a.done:
		return time.Since(a.at) > freshFor
	default:
		return false
	}
}

var (
	errBusy   = errors.New("too much is asked for at a time: try again")
	errClosed = errors.New("limpet serve is about to end")
)

// answered writes what ask returns, as JSON unless it is plain, or what it has returned just now for the same key. ask may be called in another
// goroutine, and goes on if the one who asked is gone: others may wait for the same answer.
func (h *Handler) answered(w http.ResponseWriter, r *http.Request, as rights, key string, ask func(context.Context) (any, error)) {
	a, err := h.asked(as, key, ask)
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	select {
	case <-a.done:
	case <-r.Context().Done():
	}
	if r.Context().Err() != nil { // Nobody is there to be answered, or the share that the answer is for is over.
		refuse(w, http.StatusUnauthorized, wrongToken)
		return
	}
	w.Header().Set("Content-Type", a.kind)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body) // If the browser is gone, nobody misses it.
}

func (h *Handler) asked(as rights, key string, ask func(context.Context) (any, error)) (*answer, error) {
	h.memo.mu.Lock()
	defer h.memo.mu.Unlock()
	for key, a := range h.memo.answers {
		if a.isOld() {
			delete(h.memo.answers, key)
		}
	}
	if a := h.memo.answers[key]; a != nil {
		return a, nil
	}
	if err := h.memo.full(as.share); err != nil {
		return nil, err
	}
	a := &answer{by: as.share, done: make(chan struct{})}
	began := h.begin(func() {
		ctx, cancel := context.WithTimeout(h.life, askPatience)
		defer cancel()
		value, err := ask(ctx)
		a.status, a.kind, a.body = encoded(value, err, as)
		a.at = time.Now()
		close(a.done)
	})
	if !began {
		return nil, errClosed
	}
	h.memo.answers[key] = a
	return a, nil
}

// full returns errCrowded if this share asks for too much, and errBusy if all do. Shares alone cannot use up the owner's part. The caller holds mu.
func (m *memo) full(by *share) error {
	own, shares := 0, 0
	for _, a := range m.answers {
		if a.by != nil {
			shares++
		}
		if a.by == by {
			own++
		}
	}
	switch {
	case by != nil && own >= mostAskedByOne:
		return errCrowded
	case by != nil && shares >= mostAskedByShares, len(m.answers) >= mostAsked:
		return errBusy
	}
	return nil
}

// forget has the next who asks by one of some keys get a new answer.
func (m *memo) forget(keys ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		delete(m.answers, key)
	}
}

// errUnanswered is what a share link's viewer is told of an error that may say how a machine is reached, or what is on it.
var errUnanswered = errors.New("the session does not answer")

// encoded returns the status, the Content-Type and the body for a value, or for an error.
func encoded(value any, err error, as rights) (status int, kind string, body []byte) {
	status, kind = http.StatusOK, "application/json"
	if text, is := value.(plain); is && err == nil {
		return status, plainType, text
	}
	if err == nil {
		body, err = json.Marshal(value)
	}
	if err != nil {
		status = statusOf(err)
		if as.share != nil && (status == http.StatusBadGateway || status == http.StatusGatewayTimeout) {
			err = errUnanswered
		}
		body, _ = json.Marshal(refusal{err.Error()}) // A text cannot fail.
	}
	return status, kind, body
}

func statusOf(err error) int {
	var bad badAnswerError
	switch {
	case errors.As(err, &bad):
		return http.StatusBadRequest
	case errors.Is(err, errNotAsked), errors.Is(err, errChanged), errors.Is(err, jobs.ErrFinished):
		return http.StatusConflict
	case errors.Is(err, errOver):
		return http.StatusUnauthorized
	case errors.Is(err, errCrowded):
		return http.StatusTooManyRequests
	case errors.Is(err, errShares):
		return http.StatusConflict
	case errors.Is(err, errClosed), errors.Is(err, errBusy), errors.Is(err, errViewers):
		return http.StatusServiceUnavailable
	case errors.Is(err, errUnrecorded):
		return http.StatusInsufficientStorage
	case errors.Is(err, questions.ErrWithin):
		return http.StatusForbidden
	case errors.Is(err, session.ErrNotFound), errors.Is(err, jobs.ErrNotFound), errors.Is(err, terminal.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}
