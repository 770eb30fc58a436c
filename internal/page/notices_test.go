package page_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

// notice is an event that is one.
func notice(seq int64, text string) session.Event {
	return session.Event{Seq: seq, Time: time.Now(), Kind: session.NoticeEvent, Notice: &session.Notice{Kind: session.JobEnded, About: "job-1", Text: text}}
}

func question(id string) questions.Open {
	return questions.Open{ID: id, From: "an agent", Session: "build", Question: approval.Question{Script: "rm -rf build"}}
}

// notices opens a stream that has nothing else.
func (p *served) notices(query string) *stream {
	p.t.Helper()
	answer := p.ask("/api/events?"+query, nil)
	require.Equal(p.t, http.StatusOK, answer.StatusCode)
	return &stream{p.t, answer.Body, bufio.NewReader(answer.Body)}
}

func TestNoticesComeInAStream(t *testing.T) {
	s := newStand()
	old := notice(1, "before anybody asked")
	old.Time = time.Now().Add(-time.Hour)
	s.puts(old)
	p := serve(t, s)
	one := p.notices("notices=")
	hello := one.next()
	assert.Equal(t, "hello", hello.Kind)
	assert.Zero(t, hello.Notices)
	s.puts(notice(2, "make has ended: exit 2"))
	told := one.next()
	assert.Equal(t, "told", told.Kind)
	assert.Equal(t, "make has ended: exit 2", told.Notice.Text, "and not what was before")
	assert.Equal(t, "build", told.Notice.Session)
	assert.Equal(t, "job-1", told.Notice.About)
	assert.Equal(t, "job_ended", told.Notice.Kind)
	assert.EqualValues(t, 1, told.Notice.Number)
	assert.False(t, told.Notice.Time.IsZero())

	s.change(func() { s.questions = []questions.Open{question("q1")} })
	told = one.next()
	assert.Equal(t, page.QuestionNotice, told.Notice.Kind)
	assert.Equal(t, "an agent asks: may this run? brief", told.Notice.Text)
	assert.Equal(t, "q1", told.Notice.About)
	s.change(func() { s.questions = append(s.questions, question("q2")) })
	assert.Equal(t, "q2", one.next().Notice.About, "each once")

	// Another page gets what it has missed, or what comes from now on.
	later, now := p.notices("notices=1"), p.notices("notices=")
	assert.EqualValues(t, 1, later.next().Notices)
	assert.EqualValues(t, 3, now.next().Notices)
	assert.EqualValues(t, 2, later.next().Notice.Number)
	assert.EqualValues(t, 3, later.next().Notice.Number)

	// Beside the events of a session, for whoever asks for both.
	both, events := p.stream("&notices=3"), p.stream("")
	for _, stream := range []*stream{both, events} {
		assert.Equal(t, "hello", stream.next().Kind)
		assert.EqualValues(t, 1, stream.next().Seq)
		assert.EqualValues(t, 2, stream.next().Seq)
	}
	s.change(func() { s.questions = append(s.questions, question("q3")) })
	assert.Equal(t, "q3", both.next().Notice.About)
	assert.Equal(t, "q3", now.next().Notice.About)
	s.puts(session.Event{Seq: 3, Kind: session.BeginEvent, Script: "make"})
	assert.Equal(t, "make", events.next().Script, "and no notice before")
	assert.Equal(t, "make", both.next().Script)
}

// What a person is told of is bounded, and so is what is remembered.
func TestNoticesAreBounded(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	one := p.notices("notices=")
	one.next()
	const many = 300
	for i := range int64(many) {
		s.puts(notice(i+1, fmt.Sprint(i+1)))
		one.next() // Else it could be one of those that are not remembered.
	}
	all := p.notices("notices=0")
	all.next()
	assert.EqualValues(t, many-256+1, all.next().Notice.Number)
	assert.Equal(t, http.StatusBadRequest, p.ask("/api/events?notices=-1", nil).StatusCode)
	assert.Equal(t, http.StatusBadRequest, p.ask("/api/events", nil).StatusCode)
}

// A program is told one at a time, in order, and how many it has missed.
func TestAProgramIsTold(t *testing.T) {
	s := newStand()
	s.change(func() { s.questions = []questions.Open{question("q1")} })
	type call struct {
		page.Notice
		missed int64
	}
	calls, goOn := make(chan call), make(chan struct{})
	p := serveWith(t, s, &page.Options{Notify: func(ctx context.Context, n page.Notice, missed int64) {
		select {
		case calls <- call{n, missed}:
		case <-ctx.Done():
			return
		}
		select {
		case <-goOn:
		case <-ctx.Done():
		}
	}})
	next := func() call {
		t.Helper()
		select {
		case c := <-calls:
			return c
		case <-time.After(testenv.Patience):
			require.FailNow(t, "nothing is told")
			return call{}
		}
	}
	assert.Equal(t, "q1", next().About, "that which waits already")
	one := p.notices("notices=0")
	one.next()
	one.next()
	for i := range int64(300) {
		s.puts(notice(i+1, fmt.Sprint(i+1)))
		one.next() // It is there.
	}
	goOn <- struct{}{}
	c := next()
	assert.EqualValues(t, 44, c.missed)
	assert.Equal(t, "45", c.Text)
	goOn <- struct{}{}
	c = next()
	assert.Zero(t, c.missed)
	assert.Equal(t, "46", c.Text)
	p.stop() // In the middle of a call.
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Zero(t, s.open, "sessions that are not disconnected")
}

// A session that ends is followed no more, and the next one is.
func TestANewSessionIsFollowed(t *testing.T) {
	s := newStand()
	p := serve(t, s)
	one := p.notices("notices=")
	one.next()
	s.puts(notice(1, "first"))
	assert.Equal(t, "first", one.next().Notice.Text)
	s.change(func() { s.ended = true })
	testenv.Await(t, "the end", func() bool { return s.is(func() bool { return s.open == 0 }) })
	s.change(func() { s.ended, s.id, s.events = false, "k9", nil })
	s.made <- struct{}{}
	s.puts(notice(1, "another one's first"))
	assert.Equal(t, "another one's first", one.next().Notice.Text)
}

// A keeper that cannot be asked for a moment tells nothing a second time, and what it told before somebody looked is no news later.
func TestANoticeIsToldOnce(t *testing.T) {
	testenv.Slow(t)
	s := newStand()
	p := serve(t, s)
	one := p.notices("notices=")
	one.next()
	s.puts(notice(1, "first"))
	assert.Equal(t, "first", one.next().Notice.Text)
	s.change(func() { s.ended = true })
	testenv.Await(t, "the end", func() bool { return s.is(func() bool { return s.open == 0 }) })
	s.change(func() { s.ended = false })
	s.puts(notice(2, "second"))
	assert.Equal(t, "second", one.next().Notice.Text)
	s.change(func() { s.questions = []questions.Open{question("q1")} })
	told := one.next()
	assert.Equal(t, "q1", told.Notice.About, "nothing between")
	assert.EqualValues(t, 3, told.Notice.Number)
}

// Whoever asks a question says of which session it is, and may say anything.
func TestANoticeHasNoNameThatIsNone(t *testing.T) {
	s := newStand()
	q := question("q1")
	q.Session = "build\n\x1b[2J"
	s.change(func() { s.questions = []questions.Open{q} })
	one := serve(t, s).notices("notices=0")
	one.next()
	told := one.next()
	assert.Equal(t, "q1", told.Notice.About)
	assert.Empty(t, told.Notice.Session)
}
