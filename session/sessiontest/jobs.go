package sessiontest

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
)

// jobsOf are those of a session.
func jobsOf(t *testing.T, s session.Handle) jobs.Handle {
	t.Helper()
	h, err := s.Jobs()
	require.NoError(t, err)
	return h
}

// job starts one in the session.
func job(t *testing.T, s session.Handle, spec jobs.Spec) jobs.Job {
	t.Helper()
	j, err := s.StartJob(testenv.Context(t), spec)
	require.NoError(t, err)
	return j
}

// waited waits for the end of a job.
func waited(t *testing.T, h jobs.Handle, id string) jobs.Job {
	t.Helper()
	got, err := h.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{id}})
	require.NoError(t, err)
	require.Equal(t, jobs.WaitExited, got.Reason)
	return got.Job
}

func jobsStartInIt(t *testing.T, s session.Handle) {
	h := jobsOf(t, s)
	list, err := h.List(jobs.Filter{})
	require.NoError(t, err)
	assert.Empty(t, list)

	run(t, s, "mkdir here; cd here; export E=exported; x=not")
	dir := says(t, s, "pwd")
	j := job(t, s, jobs.Spec{Command: `echo "$PWD|$E|${x-none}|$OWN"; echo second; exit 3`, Env: []string{"OWN=o"}, Task: "t", Labels: map[string]string{"a": "b"}})
	assert.Equal(t, s.Name(), j.Session)
	ended := waited(t, h, j.ID)
	require.NotNil(t, ended.Exit)
	assert.Equal(t, 3, ended.Exit.Code)

	log, err := h.Log(j.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, dir+"|exported|none|o\nsecond\n", log.Text)
	log, err = h.Log(j.ID, jobs.LogOptions{Tail: 1})
	require.NoError(t, err)
	assert.Equal(t, "second\n", log.Text)
	assert.Equal(t, int64(2), log.Line)
	found, err := h.Search(j.ID, "^second", jobs.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, found.Matches, 1)
	assert.Equal(t, "second", found.Matches[0].Text)
	events, err := h.History(j.ID)
	require.NoError(t, err)
	require.NotEmpty(t, events)
	assert.Equal(t, jobs.Started, events[0].Kind)

	list, err = h.List(jobs.Filter{Task: "t", Labels: map[string]string{"a": "b"}, States: []jobs.State{ended.State}})
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, j.ID, list[0].ID)
	list, err = h.List(jobs.Filter{Task: "other"})
	require.NoError(t, err)
	assert.Empty(t, list)

	require.NoError(t, h.Forget(j.ID))
	_, err = h.Get(j.ID)
	assert.ErrorIs(t, err, jobs.ErrNotFound)
}

func jobsAreTalkedTo(t *testing.T, s session.Handle) {
	h := jobsOf(t, s)
	j := job(t, s, jobs.Spec{Command: "while read -r x; do echo got $x; done; echo over", Stdin: true})
	n, err := h.Write(j.ID, []byte("one\n"))
	require.NoError(t, err)
	assert.Equal(t, 4, n)
	got, err := h.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{j.ID}, Pattern: "^got one"})
	require.NoError(t, err)
	require.Equal(t, jobs.WaitMatched, got.Reason)
	assert.Equal(t, "got one", got.Match.Text)
	p, err := h.Poll(j.ID, nil)
	require.NoError(t, err)
	assert.Equal(t, "got one\n", p.New)
	require.NoError(t, h.Submit(j.ID, "two"))
	require.NoError(t, h.CloseStdin(j.ID))
	var all strings.Builder
	for c, err := range h.Follow(testenv.Context(t), j.ID, 0) {
		require.NoError(t, err)
		assert.Equal(t, int64(all.Len()), c.Offset)
		all.Write(c.Data)
	}
	assert.Equal(t, "got one\ngot two\nover\n", all.String())
	p, err = h.Poll(j.ID, &jobs.PollOptions{Lines: 1})
	require.NoError(t, err)
	assert.Equal(t, "got two\nover\n", p.New)
	assert.Equal(t, []string{"over"}, p.Last)
}

func jobsAreStopped(t *testing.T, s session.Handle) {
	h := jobsOf(t, s)
	one := job(t, s, jobs.Spec{Command: "trap '' INT; sleep 1000"})
	two := job(t, s, jobs.Spec{Command: "sleep 1000", Task: "two"})
	assert.Equal(t, 2, infoOf(t, s).Jobs)
	stopped, err := h.Stop(testenv.Context(t), one.ID)
	require.NoError(t, err)
	assert.True(t, stopped.Job.State.Finished())
	assert.NotEmpty(t, stopped.Outcome.Signalled)
	all, err := h.StopAll(testenv.Context(t), jobs.Filter{Task: "two"})
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, two.ID, all[0].Job.ID)
	assert.Zero(t, infoOf(t, s).Jobs)
}

// jobsOnTerminals are told their size.
func jobsOnTerminals(t *testing.T, s session.Handle) {
	h := jobsOf(t, s)
	j := job(t, s, jobs.Spec{Command: "trap 'stty size' WINCH; stty size; while :; do read -t 0.05 x; done", PTY: true, Size: jobs.Size{Rows: 11, Cols: 44}})
	_, err := h.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{j.ID}, Pattern: "^11 44"})
	require.NoError(t, err)
	require.NoError(t, h.Resize(j.ID, jobs.Size{Rows: 12, Cols: 45}))
	got, err := h.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{j.ID}, Pattern: "^12 45"})
	require.NoError(t, err)
	assert.Equal(t, jobs.WaitMatched, got.Reason)
	_, err = h.Stop(testenv.Context(t), j.ID)
	require.NoError(t, err)
}

// jobsErrors are the same wherever the session is, with their texts.
func jobsErrors(t *testing.T, s session.Handle) {
	h := jobsOf(t, s)
	_, err := h.Get("job-none")
	require.ErrorIs(t, err, jobs.ErrNotFound)
	assert.EqualError(t, err, `jobs: get "job-none": there is no such job; List has those that there are`)
	_, err = h.List(jobs.Filter{States: []jobs.State{"odd"}})
	require.NoError(t, err)
	_, err = s.StartJob(testenv.Context(t), jobs.Spec{Command: " "})
	assert.ErrorContains(t, err, "script is empty")
	_, err = s.StartJob(testenv.Context(t), jobs.Spec{Command: "true", Watch: []string{"("}})
	assert.ErrorContains(t, err, `pattern "("`)

	j := job(t, s, jobs.Spec{Command: "true"})
	waited(t, h, j.ID)
	_, err = h.Stop(testenv.Context(t), j.ID)
	require.ErrorIs(t, err, jobs.ErrFinished)
	var e *jobs.Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "stop", e.Op)
	assert.Equal(t, j.ID, e.ID)
	assert.NotEmpty(t, e.Remedy)
	_, err = h.Write(j.ID, []byte("x"))
	assert.ErrorIs(t, err, jobs.ErrFinished)
	_, err = h.StopAll(testenv.Context(t), jobs.Filter{})
	assert.ErrorContains(t, err, "the filter names nothing")
	_, err = h.Search(j.ID, "(", jobs.SearchOptions{})
	assert.ErrorContains(t, err, `pattern "("`)
	for _, err := range h.Follow(testenv.Context(t), "job-none", 0) {
		assert.ErrorIs(t, err, jobs.ErrNotFound)
	}
	_, err = h.Wait(testenv.Context(t), jobs.WaitOptions{Port: "odd"})
	assert.ErrorContains(t, err, "name a port")

	j = job(t, s, jobs.Spec{Command: "sleep 1000", Stdin: true}) // It reads nothing.
	n, err := h.Write(j.ID, bytes.Repeat([]byte("x"), 1<<20))
	require.ErrorIs(t, err, jobs.ErrNotRead)
	assert.Positive(t, n, "what was taken all the same")
	assert.ErrorIs(t, h.Resize(j.ID, jobs.Size{Rows: 1, Cols: 1}), jobs.ErrNotPossible)
	assert.ErrorIs(t, h.Forget(j.ID), jobs.ErrRunning)
	over, cancel := context.WithCancelCause(testenv.Context(t))
	cancel(errWhy)
	got, err := h.Wait(over, jobs.WaitOptions{IDs: []string{j.ID}})
	require.ErrorIs(t, err, errWhy)
	assert.Equal(t, jobs.WaitInterrupted, got.Reason)
	_, err = h.Stop(testenv.Context(t), j.ID)
	require.NoError(t, err)
}

// jobsPrintBytes that are no text arrive as they were.
func jobsPrintBytes(t *testing.T, s session.Handle) {
	h := jobsOf(t, s)
	j := job(t, s, jobs.Spec{Command: `printf 'a\xff\n\x00b\xfe\n'; head -c 300000 /dev/zero`})
	waited(t, h, j.ID)
	want := "a\xff\n\x00b\xfe\n"
	first := int64(0)
	log, err := h.Log(j.ID, jobs.LogOptions{Offset: &first, Bytes: len(want)})
	require.NoError(t, err)
	assert.True(t, log.Binary)
	assert.Equal(t, want, log.Text)
	p, err := h.Poll(j.ID, &jobs.PollOptions{Since: &first, Bytes: len(want)})
	require.NoError(t, err)
	assert.Equal(t, want, p.New)
	var all bytes.Buffer
	for c, err := range h.Follow(testenv.Context(t), j.ID, 0) {
		require.NoError(t, err)
		all.Write(c.Data)
	}
	assert.Equal(t, want+strings.Repeat("\x00", 300000), all.String())
}
