package page

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

// What a feed remembers: as many events as a session does, and so many bytes of them as JSON.
const (
	mostLines     = 2048
	mostLineBytes = 2 << 20
)

// What is shown of one event, in bytes.
const (
	mostScript = 32 << 10 // its beginning
	mostText   = 256 << 10
	mostError  = 4 << 10
	mostNote   = 4 << 10
	mostNotes  = 10
)

// event is a session.Event for browsers.
type event struct {
	Seq       int64     `json:"seq"`
	Time      time.Time `json:"time"`
	Session   string    `json:"session"`
	Kind      string    `json:"kind"`
	Command   int64     `json:"command"`
	Script    string    `json:"script,omitempty"`
	Cut       int       `json:"cut,omitempty"` // bytes at the script's end that are left out
	Dir       string    `json:"dir,omitempty"`
	Text      []byte    `json:"text,omitempty"` // as base64: it may be no UTF-8
	Stderr    bool      `json:"stderr,omitempty"`
	Missed    int64     `json:"missed,omitempty"` // bytes before the text
	ExitCode  int       `json:"exit_code"`
	ElapsedMS float64   `json:"elapsed_ms,omitempty"`
	Error     string    `json:"error,omitempty"`
	CPUMS     float64   `json:"cpu_ms,omitempty"`
	Notes     []string  `json:"notes,omitempty"` // what else the receipt says, a sentence each

	Notice *session.Notice `json:"notice,omitempty"` // Its text is bounded by the session.
}

func toEvent(e session.Event) event {
	out := event{
		Seq: e.Seq, Time: e.Time, Session: e.Session, Kind: string(e.Kind), Command: e.Command, Dir: e.Dir, Text: e.Text, Stderr: e.Stderr,
		Missed: e.Missed, ExitCode: e.ExitCode, ElapsedMS: float64(e.Elapsed) / float64(time.Millisecond), Error: cut(e.Error, mostError), Notice: e.Notice,
	}
	out.Script = cut(e.Script, mostScript)
	out.Cut = max(e.Cut, 0) + len(e.Script) - len(out.Script)
	if r := e.Receipt; r != nil {
		out.CPUMS = float64(r.User+r.System) / float64(time.Millisecond)
	}
	for _, note := range e.Receipt.Lines() {
		if len(out.Notes) < mostNotes {
			out.Notes = append(out.Notes, cut(note, mostNote))
		}
	}
	if extra := len(e.Text) - mostText; extra > 0 { // The end is what tells most.
		out.Text = e.Text[extra:]
		out.Missed += int64(extra)
	}
	return out
}

// cut returns the beginning of a text, of at most so many bytes.
func cut(text string, most int) string { return text[:min(len(text), most)] }

// line is an event as JSON.
type line struct {
	seq  int64
	json []byte
}

// feed has the last events of a session for all who watch it. It has one goroutine, which ends when nobody watches any more, or the
// session has ended. All fields but the first ones are guarded by the Handler's mu: what is done under it is short.
type feed struct {
	h   *Handler
	of  which
	end context.CancelFunc

	keeper  string // Session.ID; empty until it is known
	lines   []line
	bytes   int
	over    *over         // why there will be no more; nil until then
	news    chan struct{} // closed when any of the above changes
	viewers int
}

// over is the last line of a stream that the server ends.
type over struct {
	Kind string `json:"kind"`  // over
	Why  string `json:"why"`   // ended, moved or lost
	Text string `json:"error"` // for people
}

// join returns the feed of a session, for one more viewer, who must leave it. That of no session has nothing.
func (h *Handler) join(of which) (*feed, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	f := h.feeds[of]
	if f == nil && of == (which{}) {
		f = &feed{h: h, end: func() {}, news: make(chan struct{})}
		h.feeds[of] = f
	}
	if f == nil {
		var ctx context.Context
		f = &feed{h: h, of: of, news: make(chan struct{})}
		ctx, f.end = context.WithCancel(h.life)
		h.feeds[of] = f
		h.work.Go(func() { f.follow(ctx) })
	}
	f.viewers++
	return f, nil
}

// leave is the end of a viewer. That of the last one is that of the feed.
func (f *feed) leave() {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	f.viewers--
	if f.viewers == 0 {
		f.forget()
	}
}

// forget has the next viewer get another feed, and ends this one. The caller holds mu.
func (f *feed) forget() {
	f.end()
	if f.h.feeds[f.of] == f {
		delete(f.h.feeds, f.of)
	}
}

// follow is the goroutine of a feed.
func (f *feed) follow(ctx context.Context) {
	s, err := f.h.open(ctx, f.of)
	if err != nil {
		f.stop(err)
		return
	}
	defer s.Disconnect()
	f.change(func() { f.keeper = s.ID() })
	for seq := int64(0); ; {
		list, err := s.Events(ctx, seq)
		if err != nil {
			f.stop(err)
			return
		}
		for _, one := range list {
			if one.Seq <= seq {
				f.stop(errMoved)
				return
			}
			seq = one.Seq
			f.put(one)
		}
	}
}

var errMoved = errors.New("the session is kept by another process now")

// stop says why there is no more.
func (f *feed) stop(err error) {
	why := over{Kind: "over", Why: "lost", Text: err.Error()}
	switch {
	case errors.Is(err, errMoved):
		why.Why = "moved"
	case errors.Is(err, session.ErrClosed), errors.Is(err, session.ErrNotFound), errors.Is(err, wire.ErrGone):
		why.Why, why.Text = "ended", "the session has ended"
	}
	if f.of.id != "" && why.Why == "lost" { // By a share link.
		why.Text = errUnanswered.Error()
	}
	f.change(func() {
		f.over = &why
		f.forget()
	})
}

// change changes the feed, and wakes the viewers.
func (f *feed) change(how func()) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	how()
	close(f.news)
	f.news = make(chan struct{})
}

// put adds an event, and forgets the oldest ones.
func (f *feed) put(one session.Event) {
	f.h.mu.Lock()
	f.h.counts.event(f.of.name, f.keeper, one)
	f.h.mu.Unlock()
	if f.of.id != "" { // By a share link. It may be about a job that a session of its name has left before: see which.has.
		one.Notice = nil
	}
	b, err := json.Marshal(toEvent(one))
	if err != nil {
		return // As for a time beyond the year 9999; the number that is missing is shown as a gap.
	}
	f.change(func() {
		f.lines = append(f.lines, line{one.Seq, b})
		f.bytes += len(b)
		drop := 0
		for len(f.lines)-drop > mostLines || f.bytes > mostLineBytes {
			f.bytes -= len(f.lines[drop].json)
			drop++
		}
		clear(f.lines[:drop]) // What they say is not held on to.
		f.lines = f.lines[drop:]
	})
}

// opened returns the ID of the session when it is known; it is empty if the feed has ended before. The error is the cause of ctx.
func (f *feed) opened(ctx context.Context) (keeper string, err error) {
	for f.of != (which{}) {
		f.h.mu.Lock()
		keeper, over, news := f.keeper, f.over, f.news
		f.h.mu.Unlock()
		if keeper != "" || over != nil {
			return keeper, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	return "", nil
}

// mostBatch is how much is written at once, in bytes, before a viewer looks again what is still remembered.
const mostBatch = 256 << 10

// after returns some events behind a number; if there are none, why there will be none, or a channel that is closed when there is news.
func (f *feed) after(seq int64) (batch []line, over *over, news <-chan struct{}) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	size := 0
	for i := f.first(seq); i < len(f.lines) && size < mostBatch; i++ {
		batch = append(batch, f.lines[i])
		size += len(f.lines[i].json)
	}
	return batch, f.over, f.news
}

// first returns the index of the first line behind a number. The caller holds mu.
func (f *feed) first(seq int64) int {
	i := len(f.lines)
	for i > 0 && f.lines[i-1].seq > seq {
		i--
	}
	return i
}
