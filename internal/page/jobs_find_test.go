package page_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

func TestALogIsSearched(t *testing.T) {
	p, r := withJobs(t)
	job, err := r.Start(testenv.Context(t), jobs.Spec{Command: `seq 1000; printf '\033[31mred\033[0m\n'; head -c 10000 /dev/zero | tr '\0' x; echo`, Session: "build"})
	require.NoError(t, err)
	_, err = r.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{job.ID}})
	require.NoError(t, err)
	type found struct {
		Matches []struct {
			Number int64
			Text   string
		}
		More    bool
		Dropped int64
	}
	search := func(pattern string) (f found) {
		p.get("/api/jobs/"+job.ID+"/search?session=build&pattern="+pattern, &f)
		return f
	}
	f := search("%5E77%5B0-1%5D%24")
	require.Len(t, f.Matches, 2)
	assert.EqualValues(t, 770, f.Matches[0].Number)
	assert.Equal(t, "771", f.Matches[1].Text)
	assert.False(t, f.More)
	f = search("%5Ered%24")
	require.Len(t, f.Matches, 1, "without colours")
	f = search("1")
	assert.Len(t, f.Matches, 100)
	assert.True(t, f.More)
	f = search("xx")
	require.Len(t, f.Matches, 1)
	assert.Less(t, len(f.Matches[0].Text), 3<<10, "its beginning")
	assert.Empty(t, search("nowhere").Matches)

	for _, pattern := range []string{"", "%28"} {
		answer := p.ask("/api/jobs/"+job.ID+"/search?session=build&pattern="+pattern, nil)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		assert.Equal(t, http.StatusBadRequest, answer.StatusCode)
		assert.Contains(t, string(text), "wants a regular expression")
	}
	assert.Equal(t, http.StatusNotFound, p.ask("/api/jobs/nosuch/search?session=build&pattern=x", nil).StatusCode)
}

// stops asks for a job to be stopped, as the page does.
func (p *served) stops(id string, change func(*http.Request)) (status int, text string) {
	p.t.Helper()
	answer := p.ask("/api/jobs/"+id+"/stop?session=build", func(r *http.Request) {
		r.Method = http.MethodPost
		r.Header.Set("Origin", "http://"+p.addr)
		if change != nil {
			change(r)
		}
	})
	b, err := io.ReadAll(answer.Body)
	require.NoError(p.t, err)
	return answer.StatusCode, string(b)
}

func TestAJobIsStoppedByWhoMayType(t *testing.T) {
	p, r := withJobsAnd(t, &page.Options{Typing: true})
	job, err := r.Start(testenv.Context(t), jobs.Spec{Command: "exec sleep 1000", Session: "build"})
	require.NoError(t, err)
	var list struct {
		Jobs     []struct{ Finished bool }
		Stopping bool
	}
	p.get("/api/jobs?session=build", &list)
	assert.True(t, list.Stopping)
	require.Len(t, list.Jobs, 1)
	for what, row := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"of nowhere":         {func(r *http.Request) { r.Header.Del("Origin") }, http.StatusForbidden},
		"of another site":    {func(r *http.Request) { r.Header.Set("Origin", "http://example.org") }, http.StatusForbidden},
		"without the token":  {func(r *http.Request) { r.Header.Del("Authorization") }, http.StatusUnauthorized},
		"with a body":        {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("x")), 1 }, http.StatusRequestEntityTooLarge},
		"by GET":             {func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
		"of no session":      {func(r *http.Request) { r.URL.RawQuery = "" }, http.StatusBadRequest},
		"of another session": {func(r *http.Request) { r.URL.RawQuery = "session=other" }, http.StatusNotFound},
	} {
		status, text := p.stops(job.ID, row.change)
		assert.Equal(t, row.status, status, "%s: %s", what, text)
	}
	now, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.False(t, now.State.Finished())
	status, text := p.stops("nosuch", nil)
	assert.Equal(t, http.StatusNotFound, status, text)

	status, text = p.stops(job.ID, nil)
	require.Equal(t, http.StatusOK, status, text)
	assert.Contains(t, text, `"finished":true`)
	list.Jobs = nil
	p.get("/api/jobs?session=build", &list)
	assert.True(t, list.Jobs[0].Finished, "it is seen at once")
}

func TestNobodyStopsAJobWhoMayNotType(t *testing.T) {
	p, r := withJobsAnd(t, &page.Options{Answering: true})
	job, err := r.Start(testenv.Context(t), jobs.Spec{Command: "exec sleep 1000", Session: "build"})
	require.NoError(t, err)
	status, text := p.stops(job.ID, nil)
	assert.Equal(t, http.StatusForbidden, status)
	assert.Contains(t, text, "limpet jobs stop -s build "+job.ID)
	now, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.False(t, now.State.Finished())
}
