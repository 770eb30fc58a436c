package wire

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/session"
)

var (
	// ErrUnknown means that there is no command of that id: it was never asked for, or is
	// forgotten.
	ErrUnknown = errors.New("there is no command of that id, or none any more")

	// ErrOtherCommand means that the id is that of another command. Nothing ran.
	ErrOtherCommand = errors.New("the id is that of another command")

	// ErrTooLarge means that a request is too large.
	ErrTooLarge = jsonhttp.ErrTooLarge
)

// Of commands that have ended the last leastRuns are kept, and more for as long as an hour, as
// far as they are no more than mostRuns and have printed no more than mostPrinted.
const (
	leastRuns   = 64
	mostRuns    = 4096
	mostPrinted = 16 << 20
	keptFor     = time.Hour

	// mostAtOnce bounds those that run, or wait for their turn.
	mostAtOnce = 1024
)

// run is a command that somebody has asked for.
type run struct {
	session string
	request request
	asked   time.Time
	streams *streams
	stdin   *inlet // nil without
	stop    context.CancelCauseFunc
	over    chan struct{} // closed when it has ended

	// What came of it, once it is over.
	ended time.Time
	res   command.Result
	err   error
}

// printed is how much of its output is kept in memory.
func (r *run) printed() int64 {
	return int64(len(r.res.Stdout.Head) + len(r.res.Stdout.Tail) + len(r.res.Stderr.Head) + len(r.res.Stderr.Tail))
}

func (r *run) isOver() bool {
	select {
	case <-r.over:
		return true
	default:
		return false
	}
}

// told is what is known of it.
func (r *run) told() Command {
	c := Command{ID: r.request.ID, Script: string(r.request.Script), State: Running, Asked: r.asked}
	if r.isOver() {
		c.State, c.Ended = Ended, r.ended
	}
	return c
}

// last is what came of it. It must be over.
func (r *run) last() *last { return &last{resultOf(r.res), pack(r.err)} }

// nothingRan reports whether it is over without having run. It may then be asked for as if it was never.
func (r *run) nothingRan() bool { return r.isOver() && r.err != nil && r.res.Elapsed == 0 }

// book has the commands of a program's sessions. They end by themselves: who asked for them may be
// gone.
type book struct {
	noted   func(script, dir string)
	journal func() Journal
	life    context.Context
	end     context.CancelCauseFunc
	all     sync.WaitGroup

	noting sync.Mutex // held while noted is called, so that the last call has the last word. It is taken before mu
	latest time.Time  // when the command began behind which the directory was noted; guarded by noting

	mu     sync.Mutex
	closed bool
	runs   map[string]*run
	order  []*run // as they were asked for
	alive  []*run // of them those that run, or wait for their turn
	tidy   int    // how many there may be before some are forgotten
	waits  bool   // a goroutine waits for next; at most one does

	behind behind

	next chan func() // has room for the one that is sent when waits is true
	now  func() time.Time
}

func newBook(noted func(script, dir string), journal func() Journal) *book {
	b := &book{noted: noted, journal: journal, runs: make(map[string]*run), next: make(chan func(), 1), now: time.Now}
	b.life, b.end = context.WithCancelCause(context.Background())
	return b
}

// find returns the command that a request of this session asks for again; nil if begin would start one, for which the gate must be passed.
func (b *book) find(name string, req request) (*run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.found(name, req)
}

// found is find. The caller holds mu.
func (b *book) found(name string, req request) (*run, error) {
	if err := checkID(req.ID); err != nil {
		return nil, err
	}
	switch r := b.runs[req.ID]; {
	case r == nil || r.nothingRan():
		return nil, nil
	case r.session != name || !r.request.same(req):
		return nil, ErrOtherCommand
	default:
		return r, nil
	}
}

// begin returns the command of a request's id, which it starts in a session unless it was asked
// for before; with a mark, as [session.Session.DoAt] does. Over is called when a command that was started has ended. The caller has passed
// the gate.
func (b *book) begin(s session.Handle, req request, mark string, over func()) (r *run, found bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, err := b.found(s.Name(), req); r != nil || err != nil {
		return r, err == nil, err
	}
	if b.closed {
		return nil, false, session.ErrClosed
	}
	if n := len(b.alive); n >= mostAtOnce {
		return nil, false, fmt.Errorf("%d commands run, or wait for their turn: there can be no more", n)
	}
	if len(b.order) >= b.tidy {
		b.forget()
		b.tidy = len(b.order) + leastRuns
	}
	if err := b.ask(req); err != nil {
		return nil, false, err
	}
	if before := b.runs[req.ID]; before != nil { // Nothing ran of that.
		b.order = slices.DeleteFunc(b.order, func(r *run) bool { return r == before })
	}
	r = &run{session: s.Name(), request: req, asked: b.now(), streams: newStreams(req.away(), &b.behind), over: make(chan struct{})}
	value := req.value()
	if !req.Quiet {
		value.Stdout, value.Stderr = writer{r.streams, 0}, writer{r.streams, 1}
	}
	if req.Stdin {
		r.stdin = newInlet()
		r.streams.deserted = func() { r.stdin.abandon(req.away()) }
		value.Stdin = r.stdin
	}
	ctx, stop := context.WithCancelCause(b.life)
	r.stop = stop
	limited, cancel := ctx, func() {}
	if req.Deadline > 0 {
		limited, cancel = context.WithTimeout(ctx, time.Duration(req.Deadline))
	}
	b.runs[req.ID] = r
	b.order = append(b.order, r)
	b.alive = append(b.alive, r)
	b.start(func() {
		defer stop(nil)
		defer cancel()
		b.note(command.Result{})
		res, err := doAt(limited, s, mark, value)
		if r.stdin != nil {
			r.stdin.end()
		}
		b.mu.Lock()
		r.res, r.err, r.ended = res, err, b.now()
		if journal := b.journal(); req.Remember && journal != nil { // First: who hears of the end may ask again.
			journal.End(req.ID, res.ExitCode, err == nil || res.Elapsed > 0)
		}
		b.alive = slices.DeleteFunc(b.alive, func(one *run) bool { return one == r })
		b.mu.Unlock()
		close(r.over)
		over()
		b.note(res)
		r.streams.end(res)
	})
	return r, false, nil
}

// start runs a command on a goroutine that close waits for: that of an earlier command, if it waits for another one. Its stack
// has grown already; to copy a new one again and again takes a fifteenth of the time of a "true". The caller holds mu.
func (b *book) start(do func()) {
	if b.waits {
		b.waits = false
		b.next <- do
		return
	}
	b.all.Go(func() {
		for do != nil {
			do()
			do = b.another()
		}
	})
}

// another waits for the next command. It returns nil if another goroutine waits for that already, and if the book is closed.
func (b *book) another() func() {
	b.mu.Lock()
	waits := b.waits
	b.waits = true
	b.mu.Unlock()
	if waits {
		return nil
	}
	select {
	case do := <-b.next:
		return do
	case <-b.life.Done():
	}
	select {
	case do := <-b.next: // It was asked for before the end, and its caller waits for what comes of it.
		return do
	default:
		return nil
	}
}

// ask has the journal note a command that may be asked for again. The caller holds mu.
func (b *book) ask(req request) error {
	journal := b.journal()
	switch {
	case !req.Remember:
		return nil
	case journal == nil:
		return errNoJournal
	}
	return journal.Ask(req.ID, req.what())
}

// note has the first command that has not ended noted, and where the session is behind one that has. Others may begin and end before it is called.
func (b *book) note(behind command.Result) {
	b.noting.Lock()
	defer b.noting.Unlock()
	dir := behind.Dir
	if behind.Started.Before(b.latest) {
		dir = ""
	} else {
		b.latest = behind.Started
	}
	b.noted(b.first(), dir)
}

// first is the script of the first command that has not ended; empty if there is none.
func (b *book) first() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.alive) == 0 {
		return ""
	}
	return string(b.alive[0].request.Script)
}

// forget takes out what was kept long enough. The caller holds mu.
func (b *book) forget() {
	over, printed := 0, int64(0)
	var kept []*run
	for i := len(b.order) - 1; i >= 0; i-- { // From the last one.
		r := b.order[i]
		if r.isOver() {
			over++
			printed += r.printed()
			if over > leastRuns && (over > mostRuns || printed > mostPrinted || b.now().Sub(r.ended) > keptFor) {
				delete(b.runs, r.request.ID)
				r.streams.abandon() // Nobody can come back to it.
				continue
			}
		}
		kept = append(kept, r)
	}
	slices.Reverse(kept)
	b.order = kept
}

// get returns the command with an id, in a session.
func (b *book) get(name, id string) (*run, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.runs[id]
	if r == nil || r.session != name {
		return nil, ErrUnknown
	}
	return r, nil
}

// list has the commands of a session, as they were asked for.
func (b *book) list(name string) []Command {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget()
	list := []Command{} // Not null.
	for _, r := range b.order {
		if r.session == name {
			list = append(list, r.told())
		}
	}
	return list
}

// close stops what runs, and waits for it.
func (b *book) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.end(session.ErrClosed)
	b.all.Wait()
}

var (
	errNoStdin = errors.New("the command was asked for without stdin")
	errStopped = errors.New("somebody has stopped it")
)
