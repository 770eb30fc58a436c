package session

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// told is a registry with a session, and what the session tells next.
func told(t *testing.T) (r *Registry, s *Session, next func() []string) {
	t.Helper()
	r, err := New(nil)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	s, err = r.Open(t.Context(), "s", nil)
	require.NoError(t, err)
	return r, s, s.Notices
}

func TestNoticesThatArePutBackAreToldAgain(t *testing.T) {
	r, s, next := told(t)
	for i := range mostNotices + 3 {
		s.Notify(strconv.Itoa(i))
	}
	first, putBack := s.TakeNotices()
	require.Len(t, first, mostNotices+1)
	assert.Equal(t, "3 more notices were dropped", first[mostNotices])
	putBack()
	putBack()
	assert.Equal(t, first, next())

	r.tell("s", notice{text: "the end", about: "job"})
	s.Notify("news")
	_, putBack = s.TakeNotices()
	s.Notify("later")
	s.Notify("news")
	putBack()
	assert.Equal(t, []string{"the end", "news", "later"}, next())
}

func TestAnEndThatIsPutBackIsToldByOneCallerAlone(t *testing.T) {
	r, s, next := told(t)
	end := func(id string) { r.tell("s", notice{text: "the end of " + id, about: id}) }

	end("a")
	_, putBack := s.TakeNotices()
	putBack()
	r.Seen("a")
	assert.Empty(t, next(), "seen when it was put back")

	end("b")
	_, putBack = s.TakeNotices()
	r.Seen("b")
	putBack()
	assert.Empty(t, next(), "seen before it was put back")
	r.Unseen("b")
	assert.Equal(t, []string{"the end of b"}, next(), "nobody has passed it on")
}

func TestWhatWasSeenAndNotPassedOnIsTold(t *testing.T) {
	r, s, next := told(t)
	end := func(id string) { r.tell("s", notice{text: "the end of " + id, about: id}) }

	end("queued")
	r.Seen("queued")
	r.Unseen("queued")
	assert.Equal(t, []string{"the end of queued"}, next())

	r.Seen("comes between")
	end("comes between")
	r.Unseen("comes between")
	assert.Equal(t, []string{"the end of comes between"}, next())

	r.Seen("comes at last")
	r.Unseen("comes at last")
	assert.Empty(t, next())
	end("comes at last")
	assert.Equal(t, []string{"the end of comes at last"}, next())

	r.Seen("comes at last")
	r.Unseen("comes at last")
	assert.Empty(t, next(), "it was told before")

	end("two")
	r.Seen("two")
	r.Seen("two")
	r.Unseen("two")
	assert.Empty(t, next(), "the other one has passed it on")
	r.Unseen("two")
	assert.Equal(t, []string{"the end of two"}, next())

	s.Notify("news")
	r.Seen("")
	r.Unseen("")
	assert.Equal(t, []string{"news"}, next(), "they are about no end")
}

// The registry of jobs takes an end for told to whom it shows it.
func TestTheEndOfAJobThatWasSeenAndNotPassedOnIsTold(t *testing.T) {
	stateDir := testenv.TempDir(t)
	open := func() (*Registry, *Session, *jobs.Registry) {
		r, err := New(&Options{StateDir: stateDir})
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, r.Close()) })
		s, err := r.Open(t.Context(), "s", nil)
		require.NoError(t, err)
		registry, err := r.Jobs()
		require.NoError(t, err)
		return r, s, registry
	}
	r, s, registry := open()
	job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "exit 3", Notify: true})
	require.NoError(t, err)
	_, err = registry.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{job.ID}})
	require.NoError(t, err)
	_, err = registry.Log(job.ID, jobs.LogOptions{})
	require.NoError(t, err)
	r.Seen(job.ID)
	assert.Empty(t, s.Notices())
	r.Unseen(job.ID)
	want := "job " + job.ID + " (exit 3) has ended: exit 3"
	assert.Equal(t, []string{want}, s.Notices())
	require.NoError(t, r.Close())

	r, s, _ = open()
	r.Seen(job.ID)
	r.Unseen(job.ID)
	assert.Empty(t, s.Notices(), "it is old")
}
