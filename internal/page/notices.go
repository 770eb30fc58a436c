package page

import (
	"time"

	"github.com/limpet-sh/limpet/session"
)

// Notice is something that a person may want to know who does not look at the page.
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
	attended bool // somebody looks for some
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
				n := Notice{Time: time.Now().Add(-q.Age), Kind: QuestionNotice, Session: q.Session, About: q.ID}
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

// noticeSessions notices what sessions tell, from a time on.
func (h *Handler) noticeSessions(since time.Time) {
	made, done, err := h.sessions.Made()
	if err != nil {
		made, done = nil, func() {} // They are looked for from time to time.
	}
	defer done()
	followed := make(map[string]bool) // by the IDs of keepers
	ended := make(chan string)        // of those that are followed no more
	for {
		list, err := h.sessions.List(h.life)
		for _, one := range list {
			if err != nil || !one.Alive || one.Info == nil || followed[one.Record.ID] {
				continue
			}
			followed[one.Record.ID] = h.begin(func() {
				h.noticeSession(one.Record.Name, since)
				select {
				case ended <- one.Record.ID:
				case <-h.life.Done():
				}
			})
		}
		again := time.NewTimer(mostRetry)
		select {
		case <-made:
		case id := <-ended:
			delete(followed, id)
		case <-again.C:
		case <-h.life.Done():
		}
		again.Stop()
		if h.life.Err() != nil {
			return
		}
	}
}

// noticeSession notices what a session tells, until it has ended or is kept by another process.
func (h *Handler) noticeSession(name string, since time.Time) {
	s, err := h.sessions.Open(h.life, name)
	if err != nil {
		h.pause(leastRetry) // It is looked for again.
		return
	}
	defer s.Disconnect()
	for seq := int64(0); ; {
		list, err := s.Noticed(h.life, seq)
		if err != nil {
			h.pause(leastRetry)
			return
		}
		for _, one := range list {
			if one.Seq <= seq {
				return // They are those of another process.
			}
			seq = one.Seq
			if n := one.Notice; n != nil && one.Kind == session.NoticeEvent && !one.Time.Before(since) {
				h.notice(Notice{Time: one.Time, Kind: string(n.Kind), Session: name, About: n.About, Text: cut(n.Text, mostError)})
			}
		}
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
