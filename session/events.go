package session

import (
	"context"
	"io"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/command"
)

// Event is something that happens in a session, for people who watch: with a command, or a notice. It is a value.
type Event struct {
	// Seq counts the events of a registry, from 1 on. Where one is left out, it is not remembered any more.
	Seq     int64     `json:"seq"`
	Time    time.Time `json:"time"`
	Session string    `json:"session"`
	Kind    EventKind `json:"kind"`

	// Command counts the commands of a registry, from 1 on, in the order in which they were asked for. It is 0 for a notice.
	Command int64 `json:"command"`

	// Script and Dir are what begins, and where. Behind the end, Dir is where the session is then. Of a script of more than 64 KiB, Script is the
	// beginning, and Cut how many bytes are left out behind it.
	Script string `json:"script,omitempty"`
	Cut    int    `json:"cut,omitempty"`
	Dir    string `json:"dir,omitempty"`

	// Text is output, of standard error if Stderr is set. Missed bytes before it are not remembered.
	Text   []byte `json:"text,omitempty"`
	Stderr bool   `json:"stderr,omitempty"`
	Missed int64  `json:"missed,omitempty"`

	// ExitCode, Elapsed and Error are how the command has ended: the last is empty, unless something went wrong.
	ExitCode int           `json:"exit_code,omitempty"`
	Elapsed  time.Duration `json:"elapsed_ns,omitempty"`
	Error    string        `json:"error,omitempty"`

	// Notice is what is noticed; nil for other kinds.
	Notice *Notice `json:"notice,omitempty"`

	// Receipt is what else there is to say of a command that has ended. It is nil of an event of another kind, and from a limpet that tells none.
	Receipt *Receipt `json:"receipt,omitempty"`
}

// EventKind says what an Event is.
type EventKind string

// The kinds of events. What was refused before its turn has none; what is refused then begins and ends at once, with an error.
const (
	BeginEvent  EventKind = "begin"
	OutputEvent EventKind = "output"
	EndEvent    EventKind = "end"
	NoticeEvent EventKind = "notice"
)

// What is remembered: so many events, with so many bytes of scripts and output, and the last event in any case. Of each there is so much of a
// script, which a caller may have sent with 8 MiB, and of an error.
const (
	mostEvents      = 2048
	mostEventBytes  = 1 << 20
	mostEventScript = 64 << 10
	mostEventError  = 64 << 10
)

// mostHeld is how much is remembered of each stream of a command, in bytes, while nobody watches.
const mostHeld = 16 << 10

// watchedFor is how long somebody is taken for watching who has asked for events.
const watchedFor = 10 * time.Second

// events are what is remembered of the commands of a registry. The zero value is ready for use.
type events struct {
	mu       sync.Mutex
	list     []Event
	bytes    int
	seq      int64
	commands int64
	running  map[*watchedCommand]struct{} // those of which something may be held back
	news     chan struct{}                // closed when there are some; nil if nobody waits
	waiting  int
	asked    time.Time // when somebody last was told
	noticed  []Event   // the last ones that are notices, however much output there was since
}

// put takes down an event, of now unless it has a time, and returns it with its number. It forgets the oldest ones that are too many, but never
// this one: after relies on it that the last one is there. The caller holds mu.
func (e *events) put(one Event) Event {
	e.seq++
	one.Seq = e.seq
	if one.Time.IsZero() {
		one.Time = time.Now()
	}
	e.list = append(e.list, one)
	e.bytes += one.size()
	drop := 0
	for drop < len(e.list)-1 && (e.bytes > mostEventBytes || len(e.list)-drop > mostEvents) {
		e.bytes -= e.list[drop].size()
		drop++
	}
	if drop > 0 {
		clear(e.list[:drop]) // Their texts are not held on to.
		e.list = e.list[drop:]
	}
	if e.news != nil {
		close(e.news)
		e.news = nil
	}
	return one
}

func (e Event) size() int {
	size := len(e.Text) + len(e.Script) + len(e.Error) + e.Receipt.size()
	if e.Notice != nil {
		size += len(e.Notice.Text)
	}
	return size
}

// await waits until there is another event. The caller holds mu, which is free meanwhile.
func (e *events) await(ctx context.Context) error {
	if e.news == nil {
		e.news = make(chan struct{})
	}
	news := e.news
	e.mu.Unlock()
	defer e.mu.Lock()
	select {
	case <-news:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watched reports whether somebody watches. The caller holds mu.
func (e *events) watched() bool { return e.waiting > 0 || time.Since(e.asked) < watchedFor }

// tell has what was held back told to who begins to watch. The caller holds mu.
func (e *events) tell() {
	for c := range e.running {
		c.flush()
	}
}

// after returns the events behind a number, and waits until there are some. There is at least one. If some are forgotten, the first one that is
// returned has a higher number than the next.
func (e *events) after(ctx context.Context, seq int64) ([]Event, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if seq > e.seq { // It is that of another registry, which this one has followed.
		seq = 0
	}
	e.tell()
	for e.seq <= seq {
		e.waiting++
		err := e.await(ctx)
		e.waiting--
		e.asked = time.Now()
		if err != nil {
			return nil, err
		}
	}
	e.asked = time.Now()
	first := e.seq - int64(len(e.list)) // the number before that of the first
	return append([]Event(nil), e.list[max(seq-first, 0):]...), nil
}

// Events returns what has happened behind the event with a number; 0 means all that is remembered, which is up to 2048 events and 1 MiB, and the last one in any case. The
// commands, and what is noticed, are those of all sessions of the registry. It waits until there is something; ctx bounds that, and the error is its cause then. A command waits for nobody
// who watches. Of output that nobody watched while it came, the end may be all that is remembered.
func (s *Session) Events(ctx context.Context, after int64) ([]Event, error) {
	return s.r.events.after(ctx, after)
}

// watchedCommand is a command whose events are taken down.
type watchedCommand struct {
	events  *events
	session string
	number  int64
	script  string
	begun   bool // the shell has it
	tees    bool // its output comes here while it runs

	held [2]held // of stdout and stderr; under the events' mu
}

// held is what nobody watches: the end of an output that was not told yet.
type held struct {
	text   []byte
	missed int64
}

// watchedKey is that of a command in a context.
type watchedKey struct{}

// watch has the events of a request taken down. Call end with what came of it.
func (s *Session) watch(ctx context.Context, req *command.Request) (_ context.Context, end func(command.Result, error)) {
	e := &s.r.events
	c := &watchedCommand{events: e, session: s.name, script: req.Script}
	e.mu.Lock()
	e.commands++
	c.number = e.commands
	// Who wants no output as it comes gets it sooner, unless somebody watches.
	c.tees = req.Stdout != nil || req.Stderr != nil || e.watched()
	if c.tees {
		if e.running == nil {
			e.running = make(map[*watchedCommand]struct{})
		}
		e.running[c] = struct{}{}
	}
	e.mu.Unlock()
	if c.tees {
		req.Stdout, req.Stderr = &tee{c, req.Stdout, 0}, &tee{c, req.Stderr, 1}
	}
	return context.WithValue(ctx, watchedKey{}, c), c.end
}

// begins is called when the shell has the command.
func (c *watchedCommand) begins(dir string) {
	c.events.mu.Lock()
	defer c.events.mu.Unlock()
	c.begun = true
	script := cut(c.script, mostEventScript)
	c.events.put(Event{Session: c.session, Kind: BeginEvent, Command: c.number, Script: script, Cut: len(c.script) - len(script), Dir: dir})
}

// end takes down what came of the command.
func (c *watchedCommand) end(res command.Result, err error) {
	c.events.mu.Lock()
	defer c.events.mu.Unlock()
	delete(c.events.running, c)
	if !c.begun {
		return
	}
	if !c.tees {
		for i, o := range []command.Output{res.Stdout, res.Stderr} {
			text := o.Bytes()
			c.hold(i, text[max(len(text)-mostHeld, 0):])
			c.held[i].missed = o.Total - int64(len(c.held[i].text))
		}
	}
	c.flush()
	last := Event{
		Session: c.session, Kind: EndEvent, Command: c.number, Dir: res.Dir, ExitCode: res.ExitCode, Elapsed: res.Elapsed, Receipt: receiptOf(res),
	}
	if err != nil {
		last.Error = ellipsis(err.Error(), mostEventError)
	}
	c.events.put(last)
}

// hold keeps the end of what is printed. The caller holds the events' mu.
func (c *watchedCommand) hold(i int, p []byte) {
	h := &c.held[i]
	if extra := len(h.text) + len(p) - mostHeld; extra > 0 {
		h.missed += int64(extra)
		drop := min(extra, len(h.text))
		h.text = append(h.text[:0], h.text[drop:]...)
		p = p[extra-drop:]
	}
	h.text = append(h.text, p...)
}

// flush tells what is held back. The caller holds the events' mu.
func (c *watchedCommand) flush() {
	for i := range c.held {
		if h := &c.held[i]; len(h.text) > 0 {
			c.events.put(Event{Session: c.session, Kind: OutputEvent, Command: c.number, Text: h.text, Stderr: i == 1, Missed: h.missed})
			*h = held{}
		}
	}
}

// tee takes output down, and passes it on.
type tee struct {
	c      *watchedCommand
	to     io.Writer // may be nil
	stream int       // 0 is stdout, 1 stderr
}

func (t *tee) Write(p []byte) (int, error) {
	t.takeDown(p)
	if t.to == nil {
		return len(p), nil
	}
	return t.to.Write(p)
}

// takeDown tells those who watch, or keeps the end of it until somebody does.
func (t *tee) takeDown(p []byte) {
	c := t.c
	c.events.mu.Lock()
	defer c.events.mu.Unlock()
	if c.events.watched() {
		c.flush()
		c.events.put(Event{Session: c.session, Kind: OutputEvent, Command: c.number, Text: append([]byte(nil), p...), Stderr: t.stream == 1})
		return
	}
	c.hold(t.stream, p)
}
