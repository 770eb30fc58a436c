package page

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"
)

// mostViewers bounds how many streams and WebSockets are open at a time: by share links, and with the owner's.
const mostViewersByShares, mostViewers = 96, 128

var errViewers = errors.New("too many watch at a time: close some pages")

const (
	// heartbeat is how often an empty line is sent when there is nothing to say, so that both sides notice that the other is gone.
	heartbeat = 10 * time.Second

	// readPatience is how long a browser may take to read what is sent. Then its connection is cut; it comes back, and is told what it
	// has missed.
	readPatience = 30 * time.Second
)

// hello is the first line of a stream.
type hello struct {
	Kind    string `json:"kind"` // hello
	Session string `json:"session"`

	// Keeper is what numbers of events belong to. Resumed reports whether the stream begins behind the number that was asked for; else it
	// begins with the first event that is remembered, as what was asked for is that of another Keeper.
	Keeper  string `json:"keeper"`
	Resumed bool   `json:"resumed"`

	Notices int64 `json:"notices"` // the number behind which they are told, if they are
}

// serveEvents answers with a stream of the events of a session, until it ends or the browser is gone: one JSON object a line, the first of
// them a hello, the others events in the order of their numbers, and the last, if the server ends it, an over. Where a number is left
// out, events are lost: they came faster than the browser read, or are too old. An empty line says nothing. It begins behind the event
// of the number after, if that is of the same keeper.
//
// With notices=N there are notices among them, those behind that number, of whatever session; "notices=" means those from now on. Without a
// session there is nothing else in the stream.
func (h *Handler) serveEvents(w http.ResponseWriter, r *http.Request, as rights, of which) {
	after, ok := number(w, r, "after")
	if !ok {
		return
	}
	noticed, ok := number(w, r, "notices")
	if !ok {
		return
	}
	tells := r.URL.Query().Has("notices")
	if tells {
		h.attend()
		if r.URL.Query().Get("notices") == "" {
			noticed = h.lastNotice()
		}
	}
	if err := h.sit(as); err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	defer h.rise(as)
	f, err := h.join(of)
	if err != nil {
		refuse(w, statusOf(err), err.Error())
		return
	}
	defer f.leave()
	ctx := r.Context()
	keeper, err := f.opened(ctx)
	if err != nil {
		return // Nobody is there to be answered.
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := lines{w: w, rc: http.NewResponseController(w)}
	defer context.AfterFunc(ctx, out.hurry)()
	resumed := keeper != "" && keeper == r.URL.Query().Get("keeper")
	if !resumed {
		after = 0
	}
	if keeper != "" || of == (which{}) {
		out.value(hello{"hello", of.name, keeper, resumed, noticed})
	}
	out.flush()
	beats := time.NewTicker(heartbeat)
	defer beats.Stop()
	for out.err == nil && ctx.Err() == nil {
		batch, over, news := f.after(after)
		for _, one := range batch {
			out.line(one.json)
			after = one.seq
		}
		var told []Notice
		var more <-chan struct{}
		if tells {
			told, more = h.noticesAfter(noticed)
		}
		for _, one := range told {
			out.value(noticeLine{"told", one})
			noticed = one.Number
		}
		if len(batch)+len(told) > 0 {
			out.flush()
			continue
		}
		if over != nil {
			out.value(over)
			out.flush()
			return
		}
		select {
		case <-news:
		case <-more:
		case <-beats.C:
			out.line(nil)
			out.flush()
		case <-ctx.Done():
			return
		case <-h.life.Done():
			return
		}
	}
}

// noticeLine is a notice in a stream.
type noticeLine struct {
	Kind   string `json:"kind"` // told
	Notice Notice `json:"notice"`
}

// lines writes lines to a browser. After an error it writes nothing.
type lines struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	err error

	mu      sync.Mutex // of the deadline
	hurried bool
}

// hurry leaves the browser little time to read what is being written, as it is not to see more. The stream ends then.
func (l *lines) hurry() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hurried = true
	_ = l.rc.SetWriteDeadline(time.Now().Add(leaveWithin)) // A connection has deadlines.
}

// patient gives the browser time to read.
func (l *lines) patient() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hurried {
		return nil
	}
	return l.rc.SetWriteDeadline(time.Now().Add(readPatience))
}

func (l *lines) value(v any) {
	b, err := json.Marshal(v)
	if l.err == nil {
		l.err = err
	}
	l.line(b)
}

func (l *lines) line(b []byte) {
	if l.err != nil {
		return
	}
	if l.err = l.patient(); l.err != nil {
		return
	}
	if _, l.err = l.w.Write(b); l.err == nil {
		_, l.err = l.w.Write([]byte{'\n'})
	}
}

func (l *lines) flush() {
	if l.err == nil {
		l.err = l.rc.Flush()
	}
}
