package page

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/session"
)

// rights are what a token allows. The zero value allows nothing.
type rights struct {
	owner bool   // the token is that of New, which allows all that Options do
	share *share // that the token is of; nil for the owner
}

// need is what a request needs. The zero value is the owner's token: what needOf does not name is the owner's alone.
type need int

const (
	beOwner      need = iota
	seeList           // the list of sessions, which has that of the share alone
	seeTerminals      // the list of a session's terminals, which has the one of a share of one terminal alone
	seeTerminal       // one terminal
	seeSession        // all of a session
	stopJob
)

// shareable are the parameters of a query that may be in a request by a share link: others ask for more than what they are of, as notices does.
var shareable = map[string]bool{"session": true, "keeper": true, "after": true, "from": true, "pattern": true, "id": true}

// needOf returns what a request needs. What a WebSocket needs is in its first message: see Handler.opened.
func needOf(r *http.Request) need {
	for name := range r.URL.Query() {
		if !shareable[name] {
			return beOwner
		}
	}
	ofJob, isJob := strings.CutPrefix(r.URL.Path, jobPath)
	_, what, _ := strings.Cut(ofJob, "/")
	switch {
	case isJob && what == "stop" && r.Method == http.MethodPost:
		return stopJob
	case r.Method != http.MethodGet:
		return beOwner
	case isJob && (what == "log" || what == "search"), r.URL.Path == "/api/jobs", r.URL.Path == "/api/events":
		return seeSession
	case r.URL.Path == "/api/terminals":
		return seeTerminals
	case r.URL.Path == terminalPath: // The stream; the WebSocket is not asked about.
		return seeTerminal
	case r.URL.Path == "/api/sessions":
		return seeList
	}
	return beOwner
}

// allow reports whether a need is met, for a session by its name, and for one of its terminals if that is the need. Whoever opens the session
// makes sure that it is the one with the ID of the share: see Handler.open.
func (as rights) allow(n need, session, terminal string) bool {
	s := as.share
	switch {
	case s == nil:
		return as.owner
	case s.isOver():
		return false
	case n == seeList:
		return true
	case session != s.session.name:
		return false
	case n == seeTerminals:
		return true
	case n == seeTerminal:
		return s.terminal == "" || s.terminal == terminal
	case n == seeSession:
		return s.terminal == ""
	case n == stopJob:
		return s.terminal == "" && s.typing
	}
	return false
}

// mayType reports whether people may type into terminals, and stop jobs.
func (as rights) mayType(opts Options) bool {
	return opts.Typing && (as.owner || as.share != nil && as.share.typing)
}

// isOver reports whether the token is of a share that allows nothing any more.
func (as rights) isOver() bool { return as.share != nil && as.share.isOver() }

// of returns the session that a request is about: that of the share, or the one that the owner names.
func (as rights) of(name string) which {
	if as.share != nil {
		return as.share.session
	}
	return which{name: name}
}

// key tells answers to some from those to others.
func (as rights) key() string {
	if as.share != nil {
		return "\x00" + as.share.id
	}
	return ""
}

// rightsOf returns what a token allows. Tokens are compared by their hashes, which takes the same time for each.
func (h *Handler) rightsOf(token string) rights {
	hash := sha256.Sum256([]byte(token))
	as := rights{owner: subtle.ConstantTimeCompare(hash[:], h.token[:]) == 1}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.shares {
		if subtle.ConstantTimeCompare(hash[:], s.token[:]) == 1 && !as.owner && !s.isOver() {
			as.share = s
		}
	}
	return as
}

// rightsFor returns what the token of a request allows.
func (h *Handler) rightsFor(r *http.Request) rights {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") { // RFC 7235, 2.1: its case means nothing, and there may be several blanks.
		return rights{}
	}
	return h.rightsOf(strings.TrimLeft(token, " "))
}

// which is a session that is meant.
type which struct {
	name string
	id   string // Session.SessionID; empty means whichever has the name now
}

// key tells one session from others.
func (w which) key() string { return w.name + "\x00" + w.id }

// has reports whether a job or a terminal that was made at a time is of this session, and not of one that had its name before. The owner has
// those, too.
func (w which) has(s Session, made time.Time) bool { return w.id == "" || !made.Before(s.Created()) }

// open opens a session. The error is session.ErrNotFound if another one has its name now.
func (h *Handler) open(ctx context.Context, w which) (Session, error) {
	s, err := h.sessions.Open(ctx, w.name)
	if err != nil {
		return nil, err
	}
	if w.id != "" && s.SessionID() != w.id {
		s.Disconnect()
		return nil, &session.Error{Op: "open", Session: w.name, Err: session.ErrNotFound}
	}
	return s, nil
}

var (
	errOver    = errors.New("this link is not valid any more: it was revoked, or its time is over")
	errCrowded = errors.New("too much is open by this link at a time: close some pages")
)

// during returns a context that ends with a share, too, and what must be called when all is done that the share allows. A context of the
// owner ends as it would. The error is errOver or errCrowded.
func (as rights) during(ctx context.Context) (context.Context, func(), error) {
	s := as.share
	if s == nil {
		return ctx, func() {}, nil
	}
	if !s.enter() {
		return nil, nil, errCrowded
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.life, func() { cancel(errOver) })
	done := func() {
		stop()
		cancel(nil)
		s.leave()
	}
	if s.isOver() {
		done()
		return nil, nil, errOver
	}
	return ctx, done, nil
}
