package page

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/session"
)

// Notice is what --notify and pages tell a person who does not look.
type Notice struct {
	Number  int64     `json:"number"` // counts them, from 1 on
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"` // QuestionNotice, PasswordNotice, or a session.NoticeKind
	Session string    `json:"session,omitempty"`

	// About is the ID of the question, the job or the terminal.
	About string `json:"about"`

	// Text is one sentence. Parts of it are of programs and agents: it is not fit for a terminal as it is.
	Text string `json:"text"`
}

// The kinds of notices, besides those of sessions.
const (
	QuestionNotice = "question"
	PasswordNotice = "password"
)

const (
	mostNotices = 256 // that are remembered

	// What cannot be asked now is asked again after such a time, which is longer each time.
	leastRetry = time.Second
	mostRetry  = time.Minute
)

// notices are those of the program. They are guarded by the Handler's mu.
type notices struct {
	attended bool // the goroutines that collect notices run
	list     []Notice
	last     int64         // the number of the last one
	news     chan struct{} // closed when there are more
}

// attend begins to look for what there is to notice, unless it is looked for. That goes on until Close: a browser comes back.
func (h *Handler) attend() {
	h.mu.Lock()
	begun := h.notices.attended
	h.notices.attended = true
	h.mu.Unlock()
	if begun {
		return
	}
	h.begin(h.noticeQuestions) // After Close there is nobody to be told.
	since := time.Now()
	h.begin(func() { h.noticeSessions(since) })
}

// notice tells everybody.
func (h *Handler) notice(n Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notices.last++
	n.Number = h.notices.last
	h.notices.list = append(h.notices.list, n)
	if extra := len(h.notices.list) - mostNotices; extra > 0 {
		h.notices.list = append(h.notices.list[:0:0], h.notices.list[extra:]...) // The older ones are not held on to.
	}
	close(h.notices.news)
	h.notices.news = make(chan struct{})
}

// noticesAfter returns those behind a number, and a channel that is closed when there are more.
func (h *Handler) noticesAfter(number int64) (list []Notice, news <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, n := range h.notices.list {
		if n.Number > number {
			list = append(list, h.notices.list[i:]...)
			break
		}
	}
	return list, h.notices.news
}

// lastNotice is the number of the last one.
func (h *Handler) lastNotice() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.notices.last
}

// noticeQuestions notices each question once.
func (h *Handler) noticeQuestions() {
	known := make(map[string]bool)
	wait := leastRetry
	for h.life.Err() == nil {
		list, err := h.sessions.Questions(h.life)
		if err == nil {
			wait = leastRetry
			before := known
			known = make(map[string]bool, len(list))
			for _, q := range list {
				known[q.ID] = true
				if before[q.ID] {
					continue
				}
				n := Notice{Time: time.Now().Add(-q.Age), Kind: QuestionNotice, About: q.ID}
				if validName(q.Session) { // Whoever asks says it.
					n.Session = q.Session
				}
				does := "asks: may this run? "
				if q.Password != nil {
					n.Kind, does = PasswordNotice, "asks: "
				}
				n.Text = cut(q.From, mostBrief) + " " + does + h.sessions.Sheet(q).Brief
				h.notice(n)
			}
			err = h.sessions.AwaitQuestion(h.life, func(id string) bool { return known[id] })
		}
		if err != nil {
			wait = h.pause(wait)
		}
	}
}

// followed is a keeper whose notices are told. It belongs to the goroutine of noticeSession while that runs, and to noticeSessions else.
type followed struct {
	running bool
	end     context.CancelFunc // of what runs
	seq     int64              // the number of the last event that was told
	since   time.Time          // in the first answer, what is older is not told; zero: all of it is
	wait    time.Duration      // before it is asked again
}

// noticeSessions notices what sessions tell: of those that are there, from a time on.
func (h *Handler) noticeSessions(since time.Time) {
	made, done, err := h.sessions.Made()
	if err != nil {
		made, done = nil, func() {} // They are looked for from time to time.
	}
	defer done()
	begun := since
	all := make(map[string]*followed) // by the IDs of keepers, which count their events, with the names: another machine may say any ID. Of one there are no more than are listed
	known := make(map[string]bool)    // the machines whose list was seen
	ended := make(chan string)        // of those that are not asked any more
	for h.life.Err() == nil {
		list, err := h.sessions.List(h.life)
		next := mostRetry
		there := make(map[string]bool)
		for _, one := range list {
			id := one.Record.Name + "\x00" + one.Record.ID
			if !one.Alive {
				continue
			}
			there[id] = true
			f := all[id]
			if f == nil {
				f = &followed{since: since}
				if _, target, isElsewhere := strings.Cut(one.Record.Name, "@"); isElsewhere && !known[target] {
					f.since = begun // It has answered for the first time.
				}
				all[id] = f
			}
			if one.Info == nil { // It is about to answer, perhaps.
				next = 2 * leastRetry
				continue
			}
			if !f.running {
				var ctx context.Context
				ctx, f.end = context.WithCancel(h.life)
				f.running = h.begin(func() {
					defer f.end()
					h.noticeSession(ctx, one.Record, f)
					f.wait = h.pause(max(f.wait, leastRetry)) // One that is older tells none.
					select {
					case ended <- id:
					case <-h.life.Done():
					}
				})
			}
		}
		if err == nil {
			since = time.Time{} // All that others will tell is news.
			for _, one := range list {
				if _, target, isElsewhere := strings.Cut(one.Record.Name, "@"); isElsewhere {
					known[target] = true
				}
			}
			for id, f := range all {
				if !there[id] && f.running {
					f.end()
				}
			}
			maps.DeleteFunc(all, func(id string, f *followed) bool { return !there[id] && !f.running })
		}
		again := time.NewTimer(next)
		select {
		case <-made:
		case id := <-ended:
			all[id].running = false
			h.gather(all, ended)
		case <-again.C:
		case <-h.life.Done():
		}
		again.Stop()
	}
}

// gather waits a moment for others that end: there is one list for all of them.
func (h *Handler) gather(all map[string]*followed, ended <-chan string) {
	moment := time.NewTimer(leastRetry / 2)
	defer moment.Stop()
	for {
		select {
		case id := <-ended:
			all[id].running = false
		case <-moment.C:
			return
		case <-h.life.Done():
			return
		}
	}
}

// noticeSession notices what a keeper tells, until it has none to ask any more.
func (h *Handler) noticeSession(ctx context.Context, r keeper.Record, f *followed) {
	opening, cancel := context.WithTimeout(ctx, askPatience)
	s, err := h.sessions.Open(opening, r.Name)
	cancel()
	if err == nil {
		defer s.Disconnect()
	}
	for err == nil && s.ID() == r.ID { // Else another one has the session by now.
		var list []session.Event
		if list, err = s.Noticed(ctx, f.seq); err != nil {
			break
		}
		f.wait = 0
		for _, one := range list {
			if one.Seq <= f.seq {
				continue
			}
			f.seq = one.Seq
			if n := one.Notice; n != nil && one.Kind == session.NoticeEvent && !one.Time.Before(f.since) {
				h.notice(Notice{Time: one.Time, Kind: string(n.Kind), Session: r.Name, About: n.About, Text: cut(n.Text, mostError)})
			}
		}
		f.since = time.Time{}
	}
}

// pause waits for a time, or until Close, and returns how long to wait next.
func (h *Handler) pause(wait time.Duration) (next time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-h.life.Done():
	}
	return min(2*wait, mostRetry)
}

// tellNotices passes notices on to Options.Notify, one at a time.
func (h *Handler) tellNotices() {
	for number := int64(0); h.life.Err() == nil; {
		list, news := h.noticesAfter(number)
		for _, n := range list {
			h.opts.Notify(h.life, n, n.Number-number-1)
			number = n.Number
		}
		if len(list) > 0 {
			continue
		}
		select {
		case <-news:
		case <-h.life.Done():
		}
	}
}
