package page

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/terminal"
)

const (
	sharesPath = "/api/shares"

	mostShares  = 64             // at a time
	mostOpened  = 32             // requests, streams and WebSockets at a time, by one share
	longest     = 24 * time.Hour // a share lives
	mostWanted  = 4 << 10        // bytes of a body that asks for a share
	wallPause   = 5 * time.Second
	leaveWithin = time.Second // a browser has that to read what is under way when its share ends
)

// share is what the token of a link allows besides the owner's: to see one session, or one of its terminals, and to type there. It is in
// memory alone. Its fields but opened do not change.
type share struct {
	h        *Handler
	id       string
	token    [sha256.Size]byte // its hash; nobody has the token but whoever was given it
	session  which             // with its ID
	terminal string            // its ID; empty for all of the session
	typing   bool
	created  time.Time
	expires  time.Time // by the clock on the wall

	life context.Context // ends with the share
	end  context.CancelFunc

	opened int // what is open by it; guarded by the Handler's mu
}

// isOver reports whether the share allows nothing any more.
func (s *share) isOver() bool { return s.life.Err() != nil || !time.Now().Before(s.expires) }

// keep ends the share at its time, and takes it out of the list when it has ended. It looks at the clock on the wall, too: the one that
// timers go by stands still while the machine sleeps.
func (s *share) keep() {
	ticks := time.NewTicker(wallPause)
	defer ticks.Stop()
	for !s.isOver() {
		select {
		case <-ticks.C:
		case <-s.life.Done():
		}
	}
	s.end()
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.h.shares = slices.DeleteFunc(s.h.shares, func(one *share) bool { return one == s })
}

// enter counts what is open by the share, which must leave. It returns false if that is too much.
func (s *share) enter() bool {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.opened >= mostOpened {
		return false
	}
	s.opened++
	return true
}

func (s *share) leave() {
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	s.opened--
}

// wanted is the body of a request for a share.
type wanted struct {
	Session  string `json:"session"`
	ID       string `json:"id"`       // of the session
	Terminal string `json:"terminal"` // its ID; empty for all of the session
	Typing   bool   `json:"typing"`
	Seconds  int64  `json:"seconds"`
}

// words say for what the share is.
func (w wanted) words() string {
	what := "viewing"
	if w.Typing {
		what = "viewing and typing"
	}
	return fmt.Sprintf("%s, for %v", what, time.Duration(w.Seconds)*time.Second)
}

// madeJSON is a share that was just made. Its token is said this once.
type madeJSON struct {
	shareJSON
	Token string `json:"token"`
}

// shareJSON is a share as its owner sees it.
type shareJSON struct {
	ID        string    `json:"id"`
	Session   string    `json:"session"`
	SessionID string    `json:"session_id"`
	Terminal  string    `json:"terminal,omitempty"`
	Typing    bool      `json:"typing"`
	Created   time.Time `json:"created"`
	Expires   time.Time `json:"expires"`
}

func (s *share) json() shareJSON {
	return shareJSON{s.id, s.session.name, s.session.id, s.terminal, s.typing, s.created, s.expires}
}

type sharesJSON struct {
	Shares []shareJSON `json:"shares"`
}

// serveShares answers with the list of shares, makes one, or revokes one. It is for the owner alone: see needOf. Where the request comes from is
// not looked at, as it is for an answer: a process in a session that has got hold of the owner's token gets no more by a share than it has.
func (h *Handler) serveShares(w http.ResponseWriter, r *http.Request, rest string) {
	id, revokes := strings.CutSuffix(rest, "/revoke")
	switch {
	case rest == "" && r.Method == http.MethodGet:
		jsonhttp.Write(w, http.StatusOK, sharesJSON{h.listShares()})
	case rest == "":
		h.serveNewShare(w, r)
	case !revokes:
		refuse(w, http.StatusNotFound, "there is nothing of that name here")
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		refuse(w, http.StatusMethodNotAllowed, "a share link is revoked by POST")
	case !h.revoke(strings.TrimPrefix(id, "/")):
		refuse(w, http.StatusNotFound, "there is no such share link: it was revoked, or its time is over")
	default:
		jsonhttp.Write(w, http.StatusOK, sharesJSON{h.listShares()})
	}
}

func (h *Handler) listShares() []shareJSON {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := []shareJSON{}
	for _, s := range h.shares {
		if !s.isOver() {
			list = append(list, s.json())
		}
	}
	return list
}

// revoke ends a share, and with it all that is open by it. It returns false if there is none of that ID. That this cannot be recorded does not keep
// it from being done: it lets nobody do more.
func (h *Handler) revoke(id string) bool {
	s := h.drop(id)
	if s == nil {
		return false
	}
	_, _ = h.acts(Act{Kind: RevokeAct, Session: s.session.name, About: s.id}) // As said.
	return true
}

// drop ends a share, and returns it; nil if there is none of that ID.
func (h *Handler) drop(id string) *share {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.shares, func(s *share) bool { return s.id == id })
	if i < 0 {
		return nil
	}
	s := h.shares[i]
	s.end()
	h.shares = slices.Delete(h.shares, i, i+1)
	return s
}

var errShares = fmt.Errorf("there are %d share links: revoke one first", mostShares)

func (h *Handler) serveNewShare(w http.ResponseWriter, r *http.Request) {
	var want wanted
	b, status, err := readBody(w, r, bodyPatience)
	if err == nil {
		if status, err = http.StatusBadRequest, jsonhttp.Unmarshal(b, &want); err == nil {
			status, err = h.check(want)
		}
	}
	if err != nil {
		refuse(w, status, err.Error())
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), askPatience)
	defer cancel()
	of := which{want.Session, want.ID}
	if err := h.isThere(ctx, of, want.Terminal); err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	done, err := h.acts(Act{Kind: ShareAct, Session: want.Session, About: want.Terminal, Answer: want.words()})
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	made, err := h.share(of, want.Terminal, want.Typing, time.Duration(want.Seconds)*time.Second)
	done(err)
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	jsonhttp.Write(w, http.StatusOK, made)
}

// check returns an error, and its status, if nothing like this can be shared.
func (h *Handler) check(want wanted) (status int, err error) {
	switch {
	case !validName(want.Session), want.ID == "", want.Terminal != "" && !terminal.ValidID(want.Terminal):
		return http.StatusBadRequest, errors.New(`a share is {"session", "id", "terminal", "typing", "seconds"}: the name and the ID of a session, and the ID of a terminal if it is that alone`)
	case want.Seconds < 1 || want.Seconds > int64(longest/time.Second):
		return http.StatusBadRequest, fmt.Errorf("a share link is valid for 1 to %d seconds", int64(longest/time.Second))
	case want.Typing && !h.opts.Typing:
		return http.StatusForbidden, errors.New("a share link lets nobody type: limpet serve was started without --allow-typing")
	}
	return 0, nil
}

// isThere returns an error if there is no such session, or no terminal of that ID in it.
func (h *Handler) isThere(ctx context.Context, of which, id string) error {
	s, err := h.open(ctx, of)
	if err != nil {
		return err
	}
	defer s.Disconnect()
	if id == "" {
		return nil
	}
	c := s.Terminals()
	defer closeClient(c)
	defer context.AfterFunc(ctx, func() { closeClient(c) })() // The methods of terminals take no context.
	info, err := c.Terminal(id).Info()
	if err == nil && !of.has(s, info.Created) {
		err = fmt.Errorf("terminal %s: %w", id, terminal.ErrNotFound)
	}
	return err
}

// share makes a share, with its token.
func (h *Handler) share(of which, terminal string, typing bool, lives time.Duration) (madeJSON, error) {
	token := rand.Text() // It has 130 bits.
	now := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return madeJSON{}, errClosed
	case len(h.shares) >= mostShares:
		return madeJSON{}, errShares
	}
	h.shared++
	s := &share{
		h: h, id: fmt.Sprintf("share-%d", h.shared), token: sha256.Sum256([]byte(token)), session: of, terminal: terminal, typing: typing,
		created: now, expires: now.Add(lives).Round(0), // Without the clock that stands still while the machine sleeps.
	}
	s.life, s.end = context.WithDeadline(h.life, now.Add(lives))
	h.shares = append(h.shares, s)
	h.work.Go(s.keep)
	return madeJSON{s.json(), token}, nil
}

// sharedJSON is what a page is told of the share that it is of.
type sharedJSON struct {
	Terminal string    `json:"terminal,omitempty"`
	Typing   bool      `json:"typing"`
	Expires  time.Time `json:"expires"`
}

// listShared is listSessions for a share: it has its session alone, and of that no more than its ID if one terminal is shared.
func (h *Handler) listShared(ctx context.Context, s *share) (any, error) {
	list, err := h.sessions.List(ctx)
	if err != nil {
		return nil, err
	}
	typing := rights{share: s}.mayType(h.opts)
	out := sessionsJSON{Sessions: []sessionJSON{}, Typing: typing, Share: &sharedJSON{s.terminal, typing, s.expires}}
	for _, one := range list {
		if one.Record.SessionID() != s.session.id || one.Record.Name != s.session.name {
			continue
		}
		shown := toSessionJSON(one)
		if s.terminal != "" {
			shown = sessionJSON{Name: shown.Name, ID: shown.ID, Answers: shown.Answers, Ended: shown.Ended}
			if shown.Ended != nil {
				shown.Ended = &endedJSON{At: shown.Ended.At, Why: shown.Ended.Why}
			}
		}
		out.Sessions = []sessionJSON{shown} // The last one: of those that have had the session, the one that has it now.
	}
	return out, nil
}
