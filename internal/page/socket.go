package page

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// The WebSocket at /api/terminal shows one terminal. Text messages are JSON objects, binary ones are what a terminal prints, or what
// somebody types:
//
//	browser --> {"token", "session", "terminal", "from", "cols", "rows"}
//	            within 10 s, or the connection is closed; from is the offset behind what the browser has shown before its connection was
//	            lost, in the size that it names; it is left out by one that has shown nothing
//	        <-- {"kind": "hello", "terminal": {...}, "resumed": true, "typing": false}
//	        <-- {"kind": "screen", "offset", "cols", "rows", "ansi"}    paints the screen anew: unless it is resumed, and after a gap or a resize
//	        <-- binary: 8 bytes, the offset behind it, big-endian; then output
//	        --> {"kind": "seen", "offset"}        what is shown up to there; the server sends mostUnseen beyond it at most
//	        <-- {"kind": "beat"}                  every 10 s
//	        <-- {"kind": "over", "why", "error"}  the last one; why is ended or lost
//
// And where typing is allowed:
//
//	        --> {"kind": "take"}                  now this browser types, and no other
//	        <-- {"kind": "taken"}
//	        --> {"kind": "size", "cols", "rows"}
//	        --> binary: what is typed
//	        <-- {"kind": "refused", "error"}      it was not typed
//	        --> {"kind": "back"}
//	        <-- {"kind": "back", "error"}         it types no more; error says why, if it has not asked for that
//
// Where a WebSocket cannot be opened shown.go has the same messages as a stream, to look at a terminal.
//
// Nothing waits for a browser that reads slowly: what leaves the terminal's buffer meanwhile it misses, and gets a screen instead.

// Bounds of a connection.
const (
	mostMessage = 64 << 10  // bytes, of one message of a browser
	mostUnseen  = 512 << 10 // bytes of output that were sent and not shown yet
	mostTodo    = 256       // messages that wait until the terminal has taken what was typed before

	tokenPatience = 10 * time.Second
	backPatience  = 2 * time.Second // to give the terminal the size that it had, when the browser is gone

	// gapPause is the least time between two screens: whoever cannot follow sees a few in a second.
	gapPause = 100 * time.Millisecond
)

// statusToken closes a connection whose token is wrong. WebSocket leaves the numbers from 4000 on to programs.
const statusToken websocket.StatusCode = 4401

// opening is the first message.
type opening struct {
	Token    string `json:"token"`
	Session  string `json:"session"`
	Terminal string `json:"terminal"`
	From     *int64 `json:"from"`
	Cols     int    `json:"cols"`
	Rows     int    `json:"rows"`
}

// request is a later one.
type request struct {
	Kind   string `json:"kind"`
	Offset int64  `json:"offset"`
	Cols   int    `json:"cols"`
	Rows   int    `json:"rows"`

	keys []byte // of a binary message
}

// said is a message of the server.
type said struct {
	Kind     string        `json:"kind"`
	Terminal *terminalJSON `json:"terminal,omitempty"`
	Resumed  bool          `json:"resumed,omitempty"`
	Typing   bool          `json:"typing,omitempty"`
	Offset   int64         `json:"offset,omitempty"`
	Cols     int           `json:"cols,omitempty"`
	Rows     int           `json:"rows,omitempty"`
	ANSI     []byte        `json:"ansi,omitempty"` // as base64: it may be no UTF-8
	Why      string        `json:"why,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// view is a terminal in a browser. It has four goroutines: one shows, one reads what the browser sends, one does what that asks for, and
// one looks after the terminal's size. All end with ctx. That of a stream reads nothing, and has nothing to do.
type view struct {
	h    *Handler
	c    *websocket.Conn // nil for a stream
	out  *shown          // nil for a WebSocket
	t    *remote.Terminal
	as   rights
	of   string // the name of its session
	key  string // of its seat
	ctx  context.Context
	stop context.CancelCauseFunc

	typed int64 // bytes, since the terminal was taken over; of act alone

	seen  atomic.Int64  // the offset up to which the browser has shown
	acked chan struct{} // has a token when that has changed
	again chan struct{} // has a token if the screen is to be painted anew
	todo  chan request
	lost  chan struct{} // has a token if another view has taken the terminal over

	mu   sync.Mutex
	size terminal.Size // of the terminal, as the browser knows it
}

// errHungUp ends a view whose browser is gone, or has broken the protocol.
var errHungUp = errors.New("the browser is gone")

// watch serves a connection until either side ends it.
func (h *Handler) watch(w http.ResponseWriter, r *http.Request) {
	// The Origin was compared with a fixed list, and not with the Host, as Accept does it.
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return // It was answered.
	}
	defer func() { _ = c.CloseNow() }()                            // It is closed, mostly.
	defer context.AfterFunc(h.life, func() { _ = c.CloseNow() })() // As above.
	c.SetReadLimit(mostMessage)
	first, as, ok := h.opened(r.Context(), c)
	if !ok {
		return
	}
	life, done, err := as.during(r.Context())
	if err != nil {
		h.turnAway(c, err)
		return
	}
	defer done()
	// What is being written when a share ends may wait for the browser.
	defer context.AfterFunc(life, func() { time.AfterFunc(leaveWithin, func() { _ = c.CloseNow() }) })() // As above.
	if err := h.sit(as); err != nil {
		_ = c.Close(websocket.StatusTryAgainLater, err.Error()) // The browser may be gone.
		return
	}
	defer h.rise(as)
	ctx, stop := context.WithCancelCause(life)
	defer stop(nil)
	v := &view{
		h: h, c: c, as: as, of: first.Session, key: first.Session + "\x00" + first.Terminal, ctx: ctx, stop: stop,
		acked: make(chan struct{}, 1), again: make(chan struct{}, 1), todo: make(chan request, mostTodo), lost: make(chan struct{}, 1),
	}
	var reading sync.WaitGroup
	reading.Go(v.read)
	over := v.run(first)
	stop(nil)
	switch {
	case errors.Is(context.Cause(life), errOver):
		h.turnAway(c, errOver)
	case over == nil || v.tell(*over) != nil:
		_ = c.CloseNow() // As above.
	default:
		_ = c.Close(websocket.StatusNormalClosure, "") // As above.
	}
	reading.Wait()
}

// turnAway closes the connection of a share that allows nothing any more, or has too much open.
func (h *Handler) turnAway(c *websocket.Conn, err error) {
	status := websocket.StatusTryAgainLater
	if errors.Is(err, errOver) {
		status = statusToken
	}
	_ = c.Close(status, err.Error()) // The browser may be gone.
}

// opened reads the first message, and has closed the connection if that does not allow anything. The rights are those of its token.
func (h *Handler) opened(ctx context.Context, c *websocket.Conn) (first opening, as rights, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, tokenPatience)
	defer cancel()
	kind, b, err := c.Read(ctx)
	switch {
	case err != nil: // Then it is closed.
		return first, rights{}, false
	case kind == websocket.MessageText && json.Unmarshal(b, &first) == nil:
		as = h.rightsOf(first.Token)
	}
	switch {
	case as == rights{}:
		_ = c.Close(statusToken, wrongToken) // The browser may be gone.
		return first, as, false
	case !as.allow(seeTerminal, first.Session, first.Terminal), !validName(first.Session) || !terminal.ValidID(first.Terminal):
		_ = c.Close(websocket.StatusPolicyViolation, "there is no such session or terminal") // As above.
		return first, as, false
	}
	return first, as, true
}

// run shows the terminal until it ends. It returns what there is to say of that, if the browser is still there.
func (v *view) run(first opening) (over *said) {
	of := v.as.of(first.Session)
	s, err := v.h.open(v.ctx, of)
	if err != nil {
		return v.over(err)
	}
	defer s.Disconnect()
	client := s.Terminals()
	defer closeClient(client)
	// The methods of terminals take no context. Closing the client ends them, when there was time to hand back.
	defer context.AfterFunc(v.ctx, func() { time.AfterFunc(backPatience, func() { closeClient(client) }) })()
	v.t = client.Terminal(first.Terminal)
	info, err := v.t.Info()
	if err == nil && !of.has(s, info.Created) {
		err = terminal.ErrNotFound
	}
	if err != nil {
		return v.over(err)
	}
	from := int64(-1)
	if first.From != nil && *first.From >= info.Kept && *first.From <= info.Bytes && info.Size == (terminal.Size{Cols: first.Cols, Rows: first.Rows}) {
		from = *first.From
		v.seen.Store(from)
	}
	v.setSize(info.Size)
	shown := toTerminalJSON(info)
	if err := v.tell(said{Kind: "hello", Terminal: &shown, Resumed: from >= 0, Typing: v.out == nil && v.as.mayType(v.h.opts)}); err != nil {
		return nil
	}
	var work sync.WaitGroup
	if v.out == nil {
		work.Go(v.act)
	}
	work.Go(v.look)
	err = v.show(from)
	v.stop(err)
	work.Wait()
	return v.over(err)
}

// over says why a view has ended; nil if the browser is gone.
func (v *view) over(err error) *said {
	switch {
	case errors.Is(context.Cause(v.ctx), errHungUp), errors.Is(context.Cause(v.ctx), errOver), v.h.life.Err() != nil:
		return nil
	case errors.Is(err, io.EOF):
		return &said{Kind: "over", Why: "ended", Error: "the program on it has ended"}
	case errors.Is(err, session.ErrClosed), errors.Is(err, session.ErrNotFound), errors.Is(err, terminal.ErrNotFound), errors.Is(err, wire.ErrGone), errors.Is(err, remote.ErrGone):
		return &said{Kind: "over", Why: "ended", Error: "it is not there any more"}
	}
	if v.as.share != nil {
		err = errUnanswered
	}
	return &said{Kind: "over", Why: "lost", Error: cut(err.Error(), mostError)}
}

// tell sends a message. After an error the connection is closed.
func (v *view) tell(m said) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return v.send(websocket.MessageText, b)
}

func (v *view) send(kind websocket.MessageType, b []byte) error {
	if v.out != nil {
		err := v.out.send(kind, b)
		if err != nil {
			v.stop(errHungUp)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(v.ctx), readPatience) // The last message is sent when ctx has ended.
	defer cancel()
	defer context.AfterFunc(v.h.life, cancel)()
	err := v.c.Write(ctx, kind, b)
	if err != nil {
		v.stop(errHungUp)
	}
	return err
}

// show paints the screen, and sends what comes; again after each gap. It begins with what comes behind an offset, if that is not less than 0.
func (v *view) show(from int64) error {
	for {
		if from < 0 {
			s, err := v.t.Screen()
			if err != nil {
				return err
			}
			v.setSize(s.Size)
			if err := v.tell(said{Kind: "screen", Offset: s.Offset, Cols: s.Cols, Rows: s.Rows, ANSI: s.ANSI()}); err != nil {
				return err
			}
			from = s.Offset
			if v.out != nil {
				v.seen.Store(from) // As in pass.
			}
		}
		next, err := v.pass(from)
		if errors.Is(err, errGap) {
			select {
			case <-time.After(gapPause):
			case <-v.ctx.Done():
				return context.Cause(v.ctx)
			}
		} else if !errors.Is(err, errAgain) {
			return err
		}
		if err := v.awaitSeen(v.ctx, next-mostUnseen); err != nil {
			return err
		}
		from = -1
	}
}

// Why the screen is to be painted anew.
var (
	errAgain = errors.New("the screen is to be painted anew")
	errGap   = errors.New("the browser has missed output")
)

// pass sends what comes from an offset on, until something was missed, or the screen is to be painted anew for another reason. It returns
// the offset behind what was sent.
func (v *view) pass(from int64) (next int64, err error) {
	out, err := v.t.Attach(from)
	if err != nil {
		return from, err
	}
	defer func() { _ = out.Close() }() // It cannot fail.
	ctx, stop := context.WithCancelCause(v.ctx)
	defer stop(nil)
	var waits sync.WaitGroup
	defer waits.Wait()
	defer stop(nil)
	waits.Go(func() {
		select {
		case <-v.again:
			stop(errAgain)
		case <-ctx.Done():
		}
	})
	var filter screen.QueryFilter // Requests were answered where the terminal is.
	for {
		c, err := out.Next(ctx)
		if err != nil {
			return from, err
		}
		if c.Missed > 0 {
			return from, errGap
		}
		message := make([]byte, 8, 8+len(c.Data))
		message = filter.Filter(message, c.Data)
		from = c.Offset + int64(len(c.Data)) - int64(filter.Held())
		binary.BigEndian.PutUint64(message, uint64(from))
		if err := v.send(websocket.MessageBinary, message); err != nil {
			return from, err
		}
		if v.out != nil {
			v.seen.Store(from) // A stream's browser reads no more than it shows, and its connection holds up what is behind.
		}
		if err := v.awaitSeen(ctx, from-mostUnseen); err != nil {
			return from, err
		}
	}
}

// awaitSeen waits until the browser has shown what is before an offset.
func (v *view) awaitSeen(ctx context.Context, offset int64) error {
	for v.seen.Load() < offset {
		select {
		case <-v.acked:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// look tells the browser that the connection is alive, and has the screen painted anew when the terminal has another size.
func (v *view) look() {
	sizes, beats := time.NewTicker(sizePause), time.NewTicker(heartbeat)
	defer sizes.Stop()
	defer beats.Stop()
	for {
		select {
		case <-sizes.C:
			if info, err := v.t.Info(); err == nil && info.Size != v.sizeNow() {
				token(v.again)
			}
		case <-beats.C:
			if v.tell(said{Kind: "beat"}) != nil {
				return
			}
		case <-v.ctx.Done():
			return
		}
	}
}

// token puts a token into a channel that has room for one.
func token(into chan<- struct{}) {
	select {
	case into <- struct{}{}:
	default: // There is one.
	}
}

func (v *view) setSize(size terminal.Size) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.size = size
}

func (v *view) sizeNow() terminal.Size {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.size
}
