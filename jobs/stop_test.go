package jobs_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/jobs"
)

func TestStopEndsTheWholeTree(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, nil)
	ladder := interrupt.Ladder{{Signal: syscall.SIGTERM, Grace: 100 * time.Millisecond}}
	for _, command := range []string{
		"echo $$; sleep 1000",
		"trap '' TERM INT HUP; echo $$; while :; do sleep 1; done",
		"setsid bash -c 'echo $$; sleep 1000' & wait",
		"(setsid nohup sleep 1000 & echo $!) ; sleep 1000",
		"env -i setsid bash -c 'echo $$; trap \"\" TERM; (sleep 1000); :' & wait",
		"echo $$; kill -STOP $$",
	} {
		r := openIn(t, filepath.Join(t.TempDir(), "x"), &jobs.Options{Ladder: ladder})
		job := start(t, r, jobs.Spec{Command: command})
		pid, err := strconv.Atoi(until(t, r, job.ID, `^\d+$`).Text)
		require.NoError(t, err)
		s, err := r.Stop(testenv.Context(t), job.ID)
		require.NoError(t, err)
		assert.Equal(t, jobs.Exited, s.Job.State, command)
		assert.Equal(t, jobs.ByRequest, s.Job.Exit.Stopped, command)
		assert.False(t, s.Job.Leftover, command)
		assert.NotEmpty(t, s.Outcome.Signalled, command)
		assert.Empty(t, s.Outcome.Left, command)
		assert.False(t, testenv.Alive(pid), command)
		require.NoError(t, r.Close())
	}
	_, err := r.Stop(testenv.Context(t), "job-nobody")
	assert.ErrorIs(t, err, jobs.ErrNotFound)
	job, _ := run(t, r, jobs.Spec{Command: "exit 3"})
	_, err = r.Stop(testenv.Context(t), job.ID)
	assert.ErrorIs(t, err, jobs.ErrFinished)
	assert.ErrorContains(t, err, "exit 3")
}

// What a job has left running belongs to it until that has ended.
func TestWhatAJobHasLeftIsKnownAndCanBeStopped(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, nil)
	job, _ := run(t, r, jobs.Spec{Command: "setsid bash -c 'echo $$; read x <fifo; echo late; sleep 1000' & until [[ -s /dev/null || $(jobs) ]]; do :; done; exit 2", Dir: fifoDir(t)})
	assert.Equal(t, 2, job.Exit.Code)
	assert.True(t, job.Leftover)
	m := jobs.Match{}
	testenv.Await(t, "its pid", func() bool {
		found, err := r.Search(job.ID, `^\d+$`, jobs.SearchOptions{})
		require.NoError(t, err)
		if len(found.Matches) > 0 {
			m = found.Matches[0]
		}
		return m.Text != ""
	})
	pid, err := strconv.Atoi(m.Text)
	require.NoError(t, err)
	assert.ErrorIs(t, r.Forget(job.ID), jobs.ErrRunning)
	active, err := r.Active(jobs.Filter{})
	require.NoError(t, err)
	assert.Equal(t, 1, active)
	writeFIFO(t, filepath.Join(job.Dir, "fifo"))
	testenv.Await(t, "what is printed late", func() bool { return strings.Contains(output(t, r, job.ID), "late") })
	s, err := r.Stop(testenv.Context(t), job.ID)
	require.NoError(t, err)
	assert.Equal(t, 2, s.Job.Exit.Code, "how the job itself ended does not change")
	assert.Empty(t, s.Job.Exit.Stopped)
	assert.False(t, s.Job.Leftover)
	assert.False(t, testenv.Alive(pid))
	require.NoError(t, r.Forget(job.ID))
	_, err = r.Get(job.ID)
	assert.ErrorIs(t, err, jobs.ErrNotFound)
	assert.ErrorIs(t, r.Forget(job.ID), jobs.ErrNotFound)
}

func fifoDir(t *testing.T) string {
	dir := t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	return dir
}

// writeFIFO writes a line to the fifo at path, for a script that waits to read one. A script
// that reads several lines must keep the fifo open ("exec 9<>fifo"): if it opens the fifo again
// before the first writer has closed it, its next read returns end-of-file.
func writeFIFO(t *testing.T, path string) {
	t.Helper()
	var f *os.File
	testenv.Await(t, "somebody who reads "+path, func() bool {
		var err error
		f, err = os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		return err == nil
	})
	_, err := f.WriteString("\n")
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestAllOfATaskCanBeFoundAndStopped(t *testing.T) {
	r := open(t, nil)
	a := start(t, r, jobs.Spec{Command: "sleep 1000", Task: "a", Session: "s", Labels: map[string]string{"kind": "server", "x": "1"}})
	b := start(t, r, jobs.Spec{Command: "sleep 1000", Task: "a", Labels: map[string]string{"kind": "worker"}})
	c := start(t, r, jobs.Spec{Command: "sleep 1000", Task: "c", Session: "s"})
	over, _ := run(t, r, jobs.Spec{Command: "true", Task: "a"})
	for _, row := range []struct {
		f    jobs.Filter
		want []string
	}{
		{jobs.Filter{}, []string{a.ID, b.ID, c.ID, over.ID}},
		{jobs.Filter{Task: "a"}, []string{a.ID, b.ID, over.ID}},
		{jobs.Filter{Session: "s"}, []string{a.ID, c.ID}},
		{jobs.Filter{Task: "a", Session: "s"}, []string{a.ID}},
		{jobs.Filter{Labels: map[string]string{"kind": "server"}}, []string{a.ID}},
		{jobs.Filter{Labels: map[string]string{"kind": "server", "x": "2"}}, nil},
		{jobs.Filter{States: []jobs.State{jobs.Exited}}, []string{over.ID}},
		{jobs.Filter{Task: "a", States: []jobs.State{jobs.Running}}, []string{a.ID, b.ID}},
	} {
		list, err := r.List(row.f)
		require.NoError(t, err)
		var ids []string
		for _, job := range list {
			ids = append(ids, job.ID)
		}
		assert.Equal(t, row.want, ids, "%+v", row.f)
	}
	active := func(f jobs.Filter) int {
		n, err := r.Active(f)
		require.NoError(t, err)
		return n
	}
	assert.Equal(t, 2, active(jobs.Filter{Session: "s"}))
	assert.Equal(t, 2, active(jobs.Filter{Task: "a"}))
	stopped, err := r.StopAll(testenv.Context(t), jobs.Filter{Task: "a"})
	require.NoError(t, err)
	assert.Len(t, stopped, 2)
	assert.Zero(t, active(jobs.Filter{Task: "a"}))
	assert.Equal(t, 1, active(jobs.Filter{Session: "s"}))
	_, err = r.StopAll(testenv.Context(t), jobs.Filter{})
	assert.ErrorContains(t, err, "Filter.All")
	stopped, err = r.StopAll(testenv.Context(t), jobs.Filter{Task: "nobody's"})
	require.NoError(t, err)
	assert.Empty(t, stopped)
}

// The state is never "running" for what does not run: killed from outside, or a zombie.
func TestTheStateOfAJobIsTrue(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: "exec sleep 1000"})
	require.NoError(t, syscall.Kill(job.PID, syscall.SIGKILL))
	assert.NotEqual(t, jobs.Running, func() jobs.State {
		testenv.Await(t, "its end", func() bool { return !testenv.Alive(job.PID) })
		now, err := r.Get(job.ID)
		require.NoError(t, err)
		return now.State
	}())
	job = end(t, r, job.ID)
	assert.Equal(t, syscall.SIGKILL, job.Exit.Signal)
	assert.Empty(t, job.Exit.Stopped)
	assert.Equal(t, "ended by signal 9 (killed)", job.Exit.String())

	// Its supervisor stands still: nobody can say how it ended, but it has.
	job = start(t, r, jobs.Spec{Command: "exec sleep 1000"})
	supervisor := supervisorOf(t, r.Dir(), job.ID)
	require.NoError(t, syscall.Kill(supervisor, syscall.SIGSTOP))
	require.NoError(t, syscall.Kill(job.PID, syscall.SIGKILL))
	testenv.Await(t, "its end", func() bool { return !testenv.Alive(job.PID) })
	job, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.Equal(t, jobs.Ending, job.State)
	require.NoError(t, syscall.Kill(supervisor, syscall.SIGCONT))
	assert.Equal(t, syscall.SIGKILL, end(t, r, job.ID).Exit.Signal)

	// Its supervisor is killed: the job runs on, and how it ends is not known.
	job = start(t, r, jobs.Spec{Command: "exec sleep 1000"})
	require.NoError(t, syscall.Kill(supervisorOf(t, r.Dir(), job.ID), syscall.SIGKILL))
	job, err = r.Get(job.ID)
	require.NoError(t, err)
	assert.Equal(t, jobs.Running, job.State)
	require.NoError(t, syscall.Kill(job.PID, syscall.SIGKILL))
	job = end(t, r, job.ID)
	assert.Equal(t, jobs.Lost, job.State)
	assert.Equal(t, -1, job.Exit.Code)
}

func TestCloseEndsWhatLivesWithTheProgramAndNothingElse(t *testing.T) {
	testenv.NeedProc(t)
	dir := t.TempDir()
	r, err := jobs.Open(dir, nil)
	require.NoError(t, err)
	with := start(t, r, jobs.Spec{Command: "sleep 1000"})
	detached := start(t, r, jobs.Spec{Command: "sleep 1000", Lifetime: jobs.Detached})
	require.NoError(t, r.Close())
	require.NoError(t, r.Close())
	assert.False(t, testenv.Alive(with.PID))
	assert.True(t, testenv.Alive(detached.PID))
	for _, err := range []error{
		func() error { _, err := r.Start(context.Background(), jobs.Spec{Command: "true"}); return err }(),
		func() error { _, err := r.List(jobs.Filter{}); return err }(),
		func() error { _, err := r.Get(with.ID); return err }(),
		func() error { _, err := r.Poll(with.ID, nil); return err }(),
		func() error { _, err := r.Stop(context.Background(), with.ID); return err }(),
		r.Forget(with.ID), r.Submit(with.ID, "x"),
	} {
		assert.ErrorIs(t, err, jobs.ErrClosed)
	}
	_, open := <-r.Events()
	assert.False(t, open)
	assert.Empty(t, r.Drain())

	r = openIn(t, dir, nil)
	job, err := r.Get(with.ID)
	require.NoError(t, err)
	assert.Equal(t, jobs.ByProgram, job.Exit.Stopped)
	_, err = r.Stop(testenv.Context(t), detached.ID)
	require.NoError(t, err)
	assert.False(t, testenv.Alive(detached.PID))
}
