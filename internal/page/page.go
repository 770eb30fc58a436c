// Package page is a web page that shows the sessions of this machine, and of others (places.go), to a person: which there are, the commands that run in them with
// their output as it comes, their jobs, their terminals, and the questions that wait. It changes nothing, unless [Options] allow a person
// to type into terminals and to stop jobs, or to answer questions.
//
// The way of a request: [Handler.ServeHTTP] refuses what may not be answered (guard.go), then answers with an asset (assets.go), with a
// JSON value (api.go), with a stream of events (stream.go), or with a WebSocket that shows a terminal (socket.go), by which a person may
// type into it (typing.go). Questions and their answers are in answers.go; what a person is told who does not look is in notices.go. Share links
// are in shares.go, what a token allows in rights.go, and what is recorded of it all in record.go. Recordings of terminals are in recordings.go. All who watch a session by the same right share one feed of its events (feed.go),
// and all who ask the same thing at about the same time share one answer (memo.go). [Serve] listens (serve.go).
//
// The API, all of it with "Authorization: Bearer TOKEN", and all of it GET but for answers, stops and share links:
//
//	/api/sessions                            {"sessions": [...], "machines": [...], "typing": false, "recordings": false}; those that have ended, and are remembered, have "ended"; by a share link with "share", and without "machines", "recordings" and "forked_from"
//	/api/questions                           {"questions": [...], "answering": false, "log": [...]}, those that wait for a person, and the answers given here
//	/api/questions/ID                        a question in full, see Sheet, with its "digest"
//	POST /api/questions/ID                   {"digest", "answer", "reason", "secret"}, an Answer; 409 if that question is not asked any more
//	/api/jobs?session=NAME                   {"jobs": [...], "more": N, "stopping": false}, the newest last
//	/api/jobs/ID/log?session=NAME&from=N     {"text", "offset", "next", "end", "dropped", "finished"}; at most 256 KiB, as base64; without from the end of it
//	/api/jobs/ID/search?session=NAME&pattern=RE {"matches": [{"number", "text"}], "more", "dropped"}; at most 100 lines
//	POST /api/jobs/ID/stop?session=NAME      stops it; the job as in the list, when it has ended
//	/api/terminals?session=NAME              {"terminals": [...]}, the newest last
//	/api/events?session=NAME&keeper=ID&after=N&notices=M    a stream, see stream.go
//	/metrics                                 what there is to count, for Prometheus, as text
//	/api/shares                              {"shares": [...]}, without their tokens
//	POST /api/shares                         {"session", "id", "terminal", "typing", "seconds"}, a wanted; a madeJSON, with the "token" this once
//	POST /api/shares/ID/revoke               ends a share link, and all that is open by it; the list
//	/api/recordings                          {"recordings": [...], "more": N}, if there is a directory of them; the newest first
//	/api/recordings/NAME                     one of them, as a stream, see recordings.go
//	/api/terminal                            a WebSocket, whose token is in its first message, see socket.go
//	/api/terminal?session=NAME&id=ID         a stream that shows the same terminal, without typing, see shown.go
//
// TOKEN is the owner's, or that of a share link. By one of a session there are, for that session, /api/sessions, /api/jobs and what is below it,
// /api/terminals, /api/events and the WebSocket; by one of a terminal /api/sessions, /api/terminals and the WebSocket, for that terminal.
//
// An error is {"error": "..."} with a status of 400 or more.
package page

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// Sessions are what a [Handler] shows. The methods are called from several goroutines.
type Sessions interface {
	// List returns the sessions, the oldest first, those that have ended among them.
	List(ctx context.Context) ([]keeper.Listed, error)

	// Open returns a session by its name, and never makes one: the error is session.ErrNotFound then.
	Open(ctx context.Context, name string) (Session, error)

	// Questions returns what people are asked now, the oldest first. AwaitQuestion waits until there is one whose ID is not known.
	Questions(ctx context.Context) ([]questions.Open, error)
	AwaitQuestion(ctx context.Context, known func(id string) bool) error

	// Question returns one of those. The error is questions.ErrNotOpen if it is not asked any more.
	Question(ctx context.Context, id string) (questions.Open, error)

	// Machines returns the other machines whose sessions are shown.
	Machines() []Machine

	// Made is that of keeper.Registry.
	Made() (news <-chan struct{}, done func(), err error)

	Desk
}

// Machine is another machine.
type Machine struct {
	Target string `json:"target"`          // as people call it
	Error  string `json:"error,omitempty"` // why its sessions are not known now; empty if they are
}

// Session is a session that is shown. The Handler disconnects it.
type Session interface {
	// ID is another one for each program that has had the session: the numbers of events are only comparable for the same ID.
	ID() string

	// SessionID is the same for all programs that have had the session, and another one for each session of its name. It is never empty.
	SessionID() string

	// Created is when the session of that ID was made.
	Created() time.Time

	// Events and Noticed are those of session.Handle.
	Events(ctx context.Context, after int64) ([]session.Event, error)
	Noticed(ctx context.Context, after int64) ([]session.Event, error)

	// Jobs is that of session.Handle.
	Jobs() (jobs.Handle, error)

	// Terminals reaches the terminals that the session's program has. The Handler closes it.
	Terminals() *remote.Client

	// Disconnect ends all calls. The session stays.
	Disconnect()
}

// Options are what people may do by the page. The zero value allows them to look.
type Options struct {
	// Typing allows whoever has the token, or a share link with that right, to type into terminals, to give them another size, and to stop jobs.
	Typing bool

	// Answering allows whoever has the token to answer questions. What runs in a session, a job or a terminal of limpet cannot, as far as
	// it can be seen where a request comes from.
	Answering bool

	// Notify, if it is not nil, is called by [Serve] for each notice from then on, and for each question that waits already, in order and one at a time. So many
	// notices were missed before it, as the calls took too long. It must return when ctx ends.
	Notify func(ctx context.Context, n Notice, missed int64)

	// Record, if it is not nil, writes down what a person does by the page, before it is done: an error refuses that. Calls come from several goroutines.
	Record func(ctx context.Context, a Act) error

	// Recordings, if it is not nil, is the directory whose recordings of terminals, files *.cast, the owner plays on the page. Nothing outside of it
	// is read. The caller closes it, after the Handler.
	Recordings *os.Root

	// TLS has [Serve] talk TLS, by its certificates. Nil means none: then the address must be one of the loopback.
	TLS *tls.Config

	// Hosts are the names and addresses under which browsers reach the page, besides those of New, without the port.
	Hosts []string
}

// Handler answers the requests of browsers. It is safe for concurrent use. The caller must Close it.
type Handler struct {
	sessions Sessions
	opts     Options
	token    [sha256.Size]byte // its hash, so that a comparison takes the same time for each length
	hosts    map[string]bool   // the Host headers that are answered
	origins  map[string]bool   // the Origin headers that are answered
	memo     memo

	recordings recordings

	life context.Context // ends with Close
	end  context.CancelFunc
	work sync.WaitGroup // the goroutines of feeds and of the memo, and WebSockets

	sent atomic.Int64 // bytes, to all clients

	mu      sync.Mutex
	feeds   map[which]*feed
	shares  []*share
	shared  int              // how many shares were made
	seats   map[string]*seat // of the terminals into which somebody types
	thumbs  map[string]thumbnail
	log     []loggedJSON // the last answers
	notices notices
	counts  counts
	viewers int // streams and WebSockets that are open
	guests  int // of those: by share links
	closed  bool
}

// New returns a handler for an address that a program listens on, as a listener tells it: it answers what is sent to that address, or to
// the port at localhost, 127.0.0.1 or ::1, and nothing else. Whoever has the token sees everything, and can make share links; it must be hard to guess. New
// starts nothing. Nil options are fine.
func New(sessions Sessions, token string, addr net.Addr, opts *Options) (*Handler, error) {
	if len(token) < leastToken {
		return nil, fmt.Errorf("page: a token of %d bytes is too short: use at least %d", len(token), leastToken)
	}
	h := &Handler{
		sessions: sessions, token: sha256.Sum256([]byte(token)),
		hosts: make(map[string]bool), origins: make(map[string]bool), feeds: make(map[which]*feed), seats: make(map[string]*seat), thumbs: make(map[string]thumbnail),
	}
	if opts != nil {
		h.opts = *opts
	}
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return nil, fmt.Errorf("page: listening at %v: %w", addr, err)
	}
	usual := "80" // Browsers leave it out.
	if h.opts.TLS != nil {
		usual = "443"
	}
	for _, name := range append([]string{"127.0.0.1", "localhost", "::1"}, h.opts.Hosts...) {
		h.allow(net.JoinHostPort(name, port))
		if port == usual {
			h.allow(strings.TrimSuffix(net.JoinHostPort(name, ""), ":"))
		}
	}
	h.allow(addr.String())
	h.life, h.end = context.WithCancel(context.Background())
	h.notices.news = make(chan struct{})
	h.memo.answers, h.counts.seen = make(map[string]*answer), make(map[string]lastSeen)
	return h, nil
}

// leastToken is the least length of a token in bytes: 26 characters of base32 are 130 bits.
const leastToken = 26

func (h *Handler) allow(host string) {
	h.hosts[host] = true
	h.origins[h.scheme("http")+"://"+host] = true
}

// scheme is that of http or ws, with TLS where there is some.
func (h *Handler) scheme(name string) string {
	if h.opts.TLS != nil {
		return name + "s"
	}
	return name
}

// Close ends all streams and all that the handler asks sessions for, and waits for its goroutines. Requests fail from then on. It is safe
// to call twice.
func (h *Handler) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.work.Wait()
}

// begin starts a goroutine that Close waits for. It returns false after Close.
func (h *Handler) begin(do func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.work.Go(do)
	return true
}

// enter has Close wait for the caller's Done of work. It returns false after Close.
func (h *Handler) enter() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.work.Add(1)
	return true
}

// sit counts a viewer, who must rise. The error is errViewers if there are too many: some places are the owner's.
func (h *Handler) sit(as rights) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers >= mostViewers || as.share != nil && h.guests >= mostViewersByShares {
		return errViewers
	}
	h.viewers++
	if as.share != nil {
		h.guests++
	}
	return nil
}

func (h *Handler) rise(as rights) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.viewers--
	if as.share != nil {
		h.guests--
	}
}

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	as, status, why := h.refuses(r)
	if status != 0 {
		refuse(w, status, why)
		return
	}
	setPolicy(w.Header(), h.scheme("ws")+"://"+r.Host)
	if isAPI(r) {
		ctx, done, err := as.during(r.Context())
		if err != nil {
			refuse(w, statusOf(err), err.Error())
			return
		}
		defer done()
		h.serveAPI(w, r.WithContext(ctx), as)
		return
	}
	serveAsset(w, r)
}

// kept is a session of a place.
type kept struct{ *keeper.Kept }

func (k kept) ID() string { return k.Record.ID }

func (k kept) SessionID() string { return k.Record.SessionID() }

func (k kept) Created() time.Time { return k.Record.Created }
