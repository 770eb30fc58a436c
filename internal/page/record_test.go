package page_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// acts are those that were recorded, or refused while broken is set.
type acts struct {
	mu     sync.Mutex
	list   []page.Act
	broken error
}

func (a *acts) record(_ context.Context, one page.Act) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.broken != nil {
		return a.broken
	}
	a.list = append(a.list, one)
	return nil
}

// takes returns those that there are, and forgets them.
func (a *acts) takes() (list []page.Act) {
	a.mu.Lock()
	defer a.mu.Unlock()
	list, a.list = a.list, nil
	return list
}

func TestWhatAPersonDoesIsRecorded(t *testing.T) {
	var a acts
	p, s := wholePage(t, &page.Options{Typing: true, Answering: true, Record: a.record})
	status, body := p.answers("one", page.Answer{Digest: p.sheet("one").Digest, Answer: page.No, Reason: "keep it"}, nil)
	require.Equal(t, http.StatusOK, status, body)
	one := a.takes()
	require.Len(t, one, 1)
	assert.False(t, one[0].Time.IsZero())
	one[0].Time = one[0].Time.UTC().Truncate(0)
	assert.Equal(t, page.Act{Time: one[0].Time, Kind: page.AnswerAct, Session: "build", About: "one", Script: "brief", Answer: "no: keep it"}, one[0])

	// A password is not in it, and what was not done is said.
	s.change(func() {
		s.questions, s.refuses = []questions.Open{asksForPassword("two", "Password: ")}, errors.New("too late")
	})
	status, _ = p.answers("two", page.Answer{Digest: p.sheet("two").Digest, Answer: page.Give, Secret: []byte("s3cret")}, nil)
	assert.NotEqual(t, http.StatusOK, status)
	list := a.takes()
	require.Len(t, list, 2)
	assert.Equal(t, "give", list[0].Answer)
	require.NoError(t, list[0].Err)
	assert.EqualError(t, list[1].Err, "too late")

	term := startOn(t, s.terminals, "while read x; do echo [$x]; done")
	link := p.share(map[string]any{"terminal": term.ID(), "typing": true})
	b := p.watch(term.ID(), nil)
	b.says(map[string]any{"kind": "take"})
	b.awaits("taken")
	b.types("secret\r")
	b.reads("[secret]")
	b.says(map[string]any{"kind": "back"})
	b.awaits("back")
	p.revokes(link)
	job, err := s.jobs.(*jobs.Registry).Start(testenv.Context(t), jobs.Spec{Command: "exec sleep 1000", Session: "build"})
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, p.statusOf("/api/jobs/"+job.ID+"/stop?session=build", p.posts(nil)))
	list = a.takes()
	require.Len(t, list, 5)
	for i, want := range []page.Act{
		{Kind: page.ShareAct, About: term.ID(), Answer: "viewing and typing, for 1h0m0s"}, {Kind: page.TakeAct, About: term.ID()},
		{Kind: page.BackAct, About: term.ID(), Typed: 7}, {Kind: page.RevokeAct, About: link.ID}, {Kind: page.StopAct, About: job.ID},
	} {
		want.Session, want.Time = "build", list[i].Time
		assert.Equal(t, want, list[i])
	}
}

// Whose page it is wants to know all of it: what cannot be recorded is not done.
func TestWhatCannotBeRecordedIsNotDone(t *testing.T) {
	a := acts{broken: errors.New("the disk is full")}
	p, s := wholePage(t, &page.Options{Typing: true, Answering: true, Record: a.record})
	status, body := p.answers("one", page.Answer{Digest: p.sheet("one").Digest, Answer: page.Once}, nil)
	assert.Equal(t, http.StatusInsufficientStorage, status)
	assert.Contains(t, body, "what cannot be written down is not done: the disk is full")
	assert.Empty(t, s.answers)
	assert.Equal(t, http.StatusInsufficientStorage, p.statusOf("/api/shares", p.posts(wants(nil))))
	job, err := s.jobs.(*jobs.Registry).Start(testenv.Context(t), jobs.Spec{Command: "exec sleep 1000", Session: "build"})
	require.NoError(t, err)
	assert.Equal(t, http.StatusInsufficientStorage, p.statusOf("/api/jobs/"+job.ID+"/stop?session=build", p.posts(nil)))
	now, err := s.jobs.Get(job.ID)
	require.NoError(t, err)
	assert.False(t, now.State.Finished())
	term := startOn(t, s.terminals, "exec sleep 1000")
	b := p.watch(term.ID(), nil)
	b.says(map[string]any{"kind": "take"})
	assert.Contains(t, b.awaits("refused").Error, "the disk is full")
}
