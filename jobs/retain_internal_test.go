package jobs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// clock is the registry's, and ahead of the world's.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

func (c *clock) pass(d time.Duration) { c.ahead.Add(int64(d)) }

func opened(t *testing.T, opts Options) (*Registry, *clock) {
	c := &clock{}
	opts.now = c.now
	r, err := Open(t.TempDir(), &opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r, c
}

func finish(t *testing.T, r *Registry, spec Spec) string {
	t.Helper()
	ctx := testenv.Context(t)
	job, err := r.Start(ctx, spec)
	require.NoError(t, err)
	w, err := r.Wait(ctx, WaitOptions{IDs: []string{job.ID}})
	require.NoError(t, err)
	require.Equal(t, WaitExited, w.Reason)
	return job.ID
}

func listed(t *testing.T, r *Registry) (ids []string) {
	t.Helper()
	list, err := r.List(Filter{})
	require.NoError(t, err)
	for _, job := range list {
		ids = append(ids, job.ID)
	}
	return ids
}

func TestFinishedJobsStayUntilTheirAgeLimit(t *testing.T) {
	r, c := opened(t, Options{})
	id := finish(t, r, Spec{Command: "echo x"})
	going, err := r.Start(testenv.Context(t), Spec{Command: "sleep 1000"})
	require.NoError(t, err)
	c.pass(DefaultRetain - time.Minute)
	r.expire()
	log, err := r.Log(id, LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, "x\n", log.Text)
	c.pass(time.Minute)
	r.expire()
	_, err = r.Log(id, LogOptions{})
	assert.ErrorIs(t, err, ErrNotFound)
	assert.NoDirExists(t, r.dir+"/"+id)
	c.pass(365 * 24 * time.Hour)
	r.expire()
	assert.Equal(t, []string{going.ID}, listed(t, r), "a running job is never dropped")
}

func TestTheJobThatFinishedFirstIsForgottenFirst(t *testing.T) {
	r, _ := opened(t, Options{MaxFinished: 3})
	going, err := r.Start(testenv.Context(t), Spec{Command: "sleep 1000"})
	require.NoError(t, err)
	var ids []string
	for i := range 6 {
		ids = append(ids, finish(t, r, Spec{Command: fmt.Sprintf("exit %d", i)}))
	}
	r.expire()
	assert.Equal(t, append([]string{going.ID}, ids[3:]...), listed(t, r))
	testenv.Await(t, "nothing but these and the lock", func() bool {
		entries, err := os.ReadDir(r.dir)
		require.NoError(t, err)
		return len(entries) == 5
	})
}

// By itself, without anybody who asks for it.
func TestJobsAreForgottenByThemselves(t *testing.T) {
	r, _ := opened(t, Options{Retain: 50 * time.Millisecond})
	finish(t, r, Spec{Command: "true"})
	testenv.Await(t, "its end of life", func() bool { return len(listed(t, r)) == 0 })
}

// What is counted is bounded, however long it goes on: nothing but what is in the
// directory grows with the number of jobs, and that is removed.
func TestAYearOfJobsLeavesNothing(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r, c := opened(t, Options{MaxFinished: 4})
	warm := finish(t, r, Spec{Command: "true", Notify: true, Watch: nil})
	fds := testenv.FDs(t)
	for range 40 {
		for _, spec := range []Spec{{Command: "echo match", Watch: []string{"match"}}, {Command: "echo x", Notify: true}} {
			job, err := r.Start(testenv.Context(t), spec)
			require.NoError(t, err)
			testenv.Await(t, "its end", func() bool { // After which it may be forgotten at once.
				now, err := r.Get(job.ID)
				return err != nil || now.State.Finished()
			})
		}
		c.pass(9 * 24 * time.Hour)
		r.expire()
	}
	testenv.Await(t, "supervisors to end", func() bool { return len(testenv.Children()) == 0 })
	assert.LessOrEqual(t, len(listed(t, r)), 4)
	assert.LessOrEqual(t, len(r.jobs), 4)
	r.queue.lock()
	events := len(r.queue.events)
	r.queue.mu.Unlock()
	assert.LessOrEqual(t, events, 80)
	testenv.Await(t, "descriptors to be closed", func() bool { return testenv.FDs(t) <= fds+4 })
	_, err := r.Get(warm)
	assert.ErrorIs(t, err, ErrNotFound)
}

func TestEventsThatNobodyTakesAreBoundedAndCounted(t *testing.T) {
	r, _ := opened(t, Options{})
	j := r.newJob(stored{ID: "job-x"})
	r.queue.push(Event{Kind: Completed, Offset: -1}, j)
	for i := range 5 * queueMax {
		r.queue.push(Event{Kind: Suppressed, Offset: int64(i)}, j)
	}
	events := r.Drain()
	require.Len(t, events, queueMax+1)
	assert.Equal(t, Missed, events[0].Kind)
	assert.Equal(t, 4*queueMax+1, events[0].Count)
	assert.Equal(t, Completed, events[1].Kind, "the last to be dropped")
	assert.EqualValues(t, 5*queueMax-1, events[queueMax].Offset)
	assert.Empty(t, r.Drain())
}

// Forgetting a job is not a reason to keep its end from whoever asked for it.
func TestTheEndOfAForgottenJobIsTold(t *testing.T) {
	r, _ := opened(t, Options{MaxFinished: 2})
	for range 6 {
		job, err := r.Start(testenv.Context(t), Spec{Command: "true", Notify: true})
		require.NoError(t, err)
		testenv.Await(t, "its end", func() bool {
			now, err := r.Get(job.ID)
			return err != nil || now.State.Finished()
		})
	}
	var told []Event
	testenv.Await(t, "all", func() bool {
		told = append(told, r.Drain()...)
		return len(told) >= 6
	})
	assert.Len(t, told, 6)
	r.expire()
	assert.Len(t, listed(t, r), 2)
}

// What ended while no program was there is found, however long that was.
func TestTheAgeOfAJobCountsFromWhenItsEndWasSeen(t *testing.T) {
	dir, c := t.TempDir(), &clock{}
	r, err := Open(dir, &Options{now: c.now})
	require.NoError(t, err)
	job, err := r.Start(testenv.Context(t), Spec{Command: "read x; exit 4", Stdin: true, Lifetime: Detached, Notify: true})
	require.NoError(t, err)
	require.NoError(t, r.CloseStdin(job.ID))
	require.NoError(t, r.Close())
	path := filepath.Join(dir, job.ID, "exit.json")
	exit, err := supervisor.Exit{}, error(nil)
	testenv.Await(t, "its record", func() bool {
		exit, err = supervisor.ReadExit(filepath.Dir(path))
		return err == nil
	})
	exit.Ended = time.Now().Add(-24 * time.Hour)
	require.NoError(t, supervisor.WriteExit(filepath.Dir(path), exit))
	_ = os.Remove(filepath.Join(dir, job.ID, memoFile)) // The first program may have seen it.

	r, err = Open(dir, &Options{now: c.now, Retain: time.Minute}) // The job has a Retain of its own.
	require.NoError(t, err)
	defer r.Close()
	testenv.Await(t, "the event", func() bool { return len(r.Drain()) == 1 })
	r.expire()
	assert.Equal(t, []string{job.ID}, listed(t, r))
	c.pass(DefaultRetain + time.Second)
	r.expire()
	assert.Empty(t, listed(t, r))
}

func TestADirectoryOfOthersIsRefused(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777))
	_, err := Open(dir, nil)
	assert.ErrorContains(t, err, "others than this user")
	assert.ErrorContains(t, err, "0700")
	t.Setenv("HOME", "")
	t.Setenv("XDG_STATE_HOME", "")
	_, err = Open("", nil)
	assert.ErrorContains(t, err, "set HOME or XDG_STATE_HOME")
}

// Whoever forgets a job does so when its start is through, or finds it still running.
func TestForgettingIsSafeBesideStarting(t *testing.T) {
	testenv.Slow(t)
	r, _ := opened(t, Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 30 {
			job, err := r.Start(t.Context(), Spec{Command: "true"})
			assert.NoError(t, err)
			assert.NotEmpty(t, job.ID)
		}
	}()
	for over := false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		for _, id := range listed(t, r) {
			_ = r.Forget(id)               // It may run.
			_, _ = r.Stop(t.Context(), id) // It may be forgotten.
		}
	}
}

func TestAHistoryIsBounded(t *testing.T) {
	r, _ := opened(t, Options{})
	id := finish(t, r, Spec{Command: "true"})
	j := r.jobs[id]
	for i := range 3000 {
		r.note(j, Event{Kind: Matched, Line: "a line that matches, and is as long as such lines are", Count: i})
	}
	history, err := r.History(id)
	require.NoError(t, err)
	assert.Equal(t, 2999, history[len(history)-1].Count)
	assert.Greater(t, len(history), 500)
	assert.LessOrEqual(t, testenv.Allocated(j.dir), int64(3*historyMax))
}

func TestClosingIsSafeBesideEverything(t *testing.T) {
	r, _ := opened(t, Options{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			job, err := r.Start(context.Background(), Spec{Command: "echo x; sleep 1000", Notify: true})
			if err != nil {
				return
			}
			_, _ = r.Poll(job.ID, nil) // It may be closed by now.
			_, _ = r.List(Filter{})    // As above.
		}
	}()
	testenv.Await(t, "a job", func() bool { return len(listed(t, r)) > 1 })
	require.NoError(t, r.Close())
	<-done
	assert.Empty(t, testenv.Children())
}
