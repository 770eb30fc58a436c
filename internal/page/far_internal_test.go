package page

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/session"
)

// What another machine says is shown, or left out, and never more than that.
func TestWhatAnotherMachineSaysIsLookedAt(t *testing.T) {
	var odd, late time.Time
	require.NoError(t, json.Unmarshal([]byte(`"2026-01-01T00:00:00+24:00"`), &odd))
	_, err := odd.MarshalJSON()
	require.Error(t, err, "what comes as JSON may go as none")
	late = time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC)
	long := strings.Repeat("x", 1<<20)
	l, ok := checkedRecord(keeper.Listed{
		Record: keeper.Record{Name: "a", ID: "k1", Created: odd, End: &keeper.End{At: late, Why: long, Dir: long, Running: long}},
		Info:   &session.Info{State: session.State(long), Dir: long, Policy: long, Running: long, Checkpoints: []string{"one", long, "<b>"}},
	})
	require.True(t, ok)
	b, err := json.Marshal(toSessionJSON(l))
	require.NoError(t, err)
	assert.Less(t, len(b), 16<<10)
	assert.Equal(t, []string{"one"}, l.Info.Checkpoints)
	assert.True(t, odd.Equal(l.Record.Created))
	for _, r := range []keeper.Record{{Name: "../x", ID: "k"}, {Name: "a"}, {Name: "a", ID: long}, {Name: "a", ID: "<b>"}} {
		_, ok := checkedRecord(keeper.Listed{Record: r})
		assert.False(t, ok, "%.20s %.20s", r.Name, r.ID)
	}

	s := farSession{name: "a@web1", of: &elsewhere{}}
	list := s.checked([]session.Event{
		{Seq: 1, Kind: "hello"}, {Seq: 2, Kind: "told"}, {Seq: 3, Kind: "over"}, {Seq: 4, Kind: session.NoticeEvent},
		{Seq: 5, Kind: session.NoticeEvent, Notice: &session.Notice{Kind: "question", Text: "a question waits"}},
		{Seq: 6, Kind: session.BeginEvent, Session: "build", Time: odd},
		{Seq: 7, Kind: session.NoticeEvent, Session: "build", Time: late, Notice: &session.Notice{Kind: session.JobEnded, About: long, Text: long}},
	})
	require.Len(t, list, 2)
	for _, e := range list {
		assert.Equal(t, "a@web1", e.Session)
		b, err := json.Marshal(toEvent(e))
		require.NoError(t, err)
		assert.Less(t, len(b), 8<<10)
	}
}

// numbered is a session with events, which waits behind the last of them. It counts how often it is asked.
type numbered struct {
	Session
	events []session.Event
	asked  int
	err    error
}

func (n *numbered) Noticed(ctx context.Context, after int64) ([]session.Event, error) {
	return n.Events(ctx, after)
}

func (n *numbered) Events(_ context.Context, after int64) ([]session.Event, error) {
	n.asked++
	for i, e := range n.events {
		if e.Seq > after {
			return slices.Clone(n.events[i:]), nil
		}
	}
	return nil, n.err
}

// What is left out is asked for once: an event of a newer limpet, and notices beyond the bound.
func TestWhatIsLeftOutIsNotAskedForAgainAndAgain(t *testing.T) {
	waits := errors.New("it waits")
	n := &numbered{err: waits, events: []session.Event{{Seq: 1, Kind: "newer"}, {Seq: 2, Kind: "newer"}}}
	s := farSession{n, "a@web1", &elsewhere{}}
	_, err := s.Events(t.Context(), 0)
	require.ErrorIs(t, err, waits)
	assert.Equal(t, 2, n.asked)

	n.events, n.asked = nil, 0
	for i := range 2 * mostTold {
		n.events = append(n.events, session.Event{Seq: int64(i + 1), Kind: session.NoticeEvent, Notice: &session.Notice{Kind: session.JobMatched}})
	}
	list, err := s.Noticed(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, list, mostTold)
	_, err = s.Noticed(t.Context(), list[mostTold-1].Seq)
	require.ErrorIs(t, err, waits)
	assert.Equal(t, 3, n.asked)

	n.events = []session.Event{{Seq: 9, Kind: session.BeginEvent}, {Seq: 3, Kind: "newer"}}
	_, err = s.Events(t.Context(), 5)
	require.ErrorIs(t, err, errNoNews)
}

func TestAnotherMachineTellsSoMuchInAMinute(t *testing.T) {
	var p perMinute
	now := time.Now()
	allowed := 0
	for i := range 1000 {
		if p.allows(now.Add(time.Duration(i) * time.Millisecond)) {
			allowed++
		}
	}
	assert.Equal(t, mostTold, allowed)
	assert.True(t, p.allows(now.Add(time.Minute)))
}

func TestViewersOfAShareLinkAreNotToldHowAMachineIsReached(t *testing.T) {
	_, _, body := encoded(nil, assert.AnError, rights{share: &share{}})
	assert.NotContains(t, string(body), assert.AnError.Error())
	assert.Contains(t, string(body), "the session does not answer")
	status, _, body := encoded(nil, &session.Error{Op: "open", Session: "a", Err: session.ErrNotFound}, rights{share: &share{}})
	assert.Equal(t, 404, status)
	assert.Contains(t, string(body), "a")
	_, _, body = encoded(nil, assert.AnError, rights{owner: true})
	assert.Contains(t, string(body), assert.AnError.Error())
}
