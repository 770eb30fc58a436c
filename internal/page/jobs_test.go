package page_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// withJobs returns a page of a session with real jobs.
func withJobs(t *testing.T) (*served, *jobs.Registry) { return withJobsAnd(t, nil) }

// withJobsAnd is withJobs for what people may do.
func withJobsAnd(t *testing.T, opts *page.Options) (*served, *jobs.Registry) {
	t.Helper()
	r, err := jobs.Open(testenv.TempDir(t), nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	s := newStand()
	s.jobs = r
	p := serveWith(t, s, opts)
	t.Cleanup(func() {
		assert.True(t, s.is(func() bool { return s.open == 0 }), "each request disconnects its session")
	})
	return p, r
}

// logPart is an answer about a log.
type logPart struct {
	Text                       []byte
	Offset, Next, End, Dropped int64
	Finished                   bool
}

func TestJobsAreShownWithTheirLogs(t *testing.T) {
	p, r := withJobs(t)
	job, err := r.Start(testenv.Context(t), jobs.Spec{Command: `printf '\377one\n'; echo two; exit 3`, Notify: true, Session: "build"})
	require.NoError(t, err)
	testenv.Await(t, "the end of the job", func() bool {
		now, err := r.Get(job.ID)
		require.NoError(t, err)
		return now.State.Finished()
	})
	var list struct {
		Jobs []struct {
			ID, Command, Exit, Session string
			Finished, Failed           bool
			Bytes                      int64
		}
		More int
	}
	p.get("/api/jobs?session=build", &list)
	require.Len(t, list.Jobs, 1)
	got := list.Jobs[0]
	assert.Equal(t, job.ID, got.ID)
	assert.Equal(t, "exit code 3", got.Exit)
	assert.True(t, got.Finished)
	assert.True(t, got.Failed)
	assert.EqualValues(t, 9, got.Bytes)

	var log logPart
	p.get("/api/jobs/"+job.ID+"/log?session=build", &log)
	assert.Equal(t, "\xffone\ntwo\n", string(log.Text), "the bytes as they are")
	assert.True(t, log.Finished)
	assert.EqualValues(t, 9, log.Next)
	log = logPart{}
	p.get("/api/jobs/"+job.ID+"/log?session=build&from=5", &log)
	assert.Equal(t, "two\n", string(log.Text))
	log = logPart{}
	p.get("/api/jobs/"+job.ID+"/log?session=build&from=9", &log)
	assert.Empty(t, log.Text)
	assert.EqualValues(t, 9, log.Next)
	log = logPart{}
	p.get("/api/jobs/"+job.ID+"/log?session=build&from=9223372036854775807", &log)
	assert.Empty(t, log.Text)
	assert.Equal(t, http.StatusNotFound, p.ask("/api/jobs/nosuch/log?session=build", nil).StatusCode)

	testenv.Await(t, "the event of its end: that a person has looked changes nothing", func() bool {
		events := r.Drain() // It may come a moment after Get has found the end.
		return len(events) > 0 && events[len(events)-1].Kind == jobs.Completed
	})
}

func TestAnAnswerHasNoMoreOfALogThanItsBound(t *testing.T) {
	p, r := withJobs(t)
	const size = 700 << 10
	job, err := r.Start(testenv.Context(t), jobs.Spec{Command: fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x; echo; exec sleep 1000", size)})
	require.NoError(t, err)
	testenv.Await(t, "the output", func() bool {
		now, err := r.Get(job.ID)
		require.NoError(t, err)
		return now.Output.End == size+1
	})
	var log logPart
	p.get("/api/jobs/"+job.ID+"/log?session=build", &log)
	assert.Len(t, log.Text, 64<<10, "the end of it, and it is not waited for more")
	assert.False(t, log.Finished)
	assert.EqualValues(t, size+1, log.Next)
	log = logPart{}
	p.get(fmt.Sprintf("/api/jobs/%s/log?session=build&from=%d", job.ID, size+1), &log)
	assert.Empty(t, log.Text, "nor is it where there is nothing new")

	now, err := r.Get(job.ID)
	require.NoError(t, err)
	var all strings.Builder
	for next := now.Output.First; next < size+1; next = log.Next {
		log = logPart{}
		p.get(fmt.Sprintf("/api/jobs/%s/log?session=build&from=%d", job.ID, next), &log)
		require.NotEmpty(t, log.Text)
		require.LessOrEqual(t, len(log.Text), 256<<10)
		require.EqualValues(t, next, log.Offset)
		require.EqualValues(t, next+int64(len(log.Text)), log.Next)
		all.Write(log.Text)
	}
	assert.Equal(t, strings.Repeat("x", int(size-now.Output.First))+"\n", all.String())

	log = logPart{}
	p.get("/api/jobs/"+job.ID+"/log?session=build&from=0", &log)
	assert.Equal(t, now.Output.First, log.Dropped, "what is not kept is told")
	assert.Equal(t, now.Output.First, log.Offset)
}
