package jobs_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// open opens a registry of the test's own, which is closed at its end.
func open(t testing.TB, opts *jobs.Options) *jobs.Registry {
	t.Helper()
	return openIn(t, filepath.Join(t.TempDir(), "jobs"), opts)
}

func openIn(t testing.TB, dir string, opts *jobs.Options) *jobs.Registry {
	t.Helper()
	r, err := jobs.Open(dir, opts)
	require.NoError(t, err)
	t.Cleanup(func() {
		if opts == nil || !opts.ReadOnly {
			_, _ = r.StopAll(testenv.Context(t), jobs.Filter{All: true}) // It may be closed.
		}
		require.NoError(t, r.Close())
	})
	return r
}

func start(t testing.TB, r *jobs.Registry, spec jobs.Spec) jobs.Job {
	t.Helper()
	job, err := r.Start(testenv.Context(t), spec)
	require.NoError(t, err)
	return job
}

// wait waits for what the options say, and for nothing else.
func wait(t testing.TB, r *jobs.Registry, o jobs.WaitOptions) jobs.Waited {
	t.Helper()
	o.Timeout = testenv.Patience
	w, err := r.Wait(testenv.Context(t), o)
	require.NoError(t, err)
	require.NotEqual(t, jobs.WaitTimeout, w.Reason, "%+v", o)
	return w
}

// end waits for the end of a job.
func end(t testing.TB, r *jobs.Registry, id string) jobs.Job {
	t.Helper()
	w := wait(t, r, jobs.WaitOptions{IDs: []string{id}})
	require.Equal(t, jobs.WaitExited, w.Reason)
	return w.Job
}

// until waits for a line of output.
func until(t testing.TB, r *jobs.Registry, id, pattern string) jobs.Match {
	t.Helper()
	w := wait(t, r, jobs.WaitOptions{IDs: []string{id}, Pattern: pattern})
	require.Equal(t, jobs.WaitMatched, w.Reason, "%+v", w.Job)
	return *w.Match
}

// output is all that is kept of what a job has printed.
func output(t testing.TB, r *jobs.Registry, id string) string {
	t.Helper()
	var zero int64
	log, err := r.Log(id, jobs.LogOptions{Offset: &zero, Bytes: 64 << 20})
	require.NoError(t, err)
	return log.Text
}

// run runs a job to its end, and returns what it has printed.
func run(t testing.TB, r *jobs.Registry, spec jobs.Spec) (jobs.Job, string) {
	t.Helper()
	job := end(t, r, start(t, r, spec).ID)
	return job, output(t, r, job.ID)
}
