package jobs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// taker collects events as they come.
type taker struct {
	mu     sync.Mutex
	events []jobs.Event
}

func (k *taker) take(e jobs.Event) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, e)
}

func (k *taker) of(kind jobs.EventKind) []jobs.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []jobs.Event
	for _, e := range k.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

func (k *taker) await(t *testing.T, kind jobs.EventKind, n int) []jobs.Event {
	t.Helper()
	testenv.Await(t, fmt.Sprintf("%d events %s", n, kind), func() bool { return len(k.of(kind)) >= n })
	return k.of(kind)
}

// settle waits until a job has ended, and its owner has looked at it since, without
// seeing it itself.
func settle(t *testing.T, r *jobs.Registry, id string) {
	t.Helper()
	testenv.Await(t, "the end of "+id, func() bool {
		job, err := r.Get(id)
		require.NoError(t, err)
		return job.State.Finished() && !job.Leftover
	})
}

func TestCompletionIsToldOnceByEachWay(t *testing.T) {
	testenv.Slow(t)
	for way, take := range map[string]func(t *testing.T, r *jobs.Registry, k *taker){
		"polling": func(t *testing.T, r *jobs.Registry, k *taker) {
			testenv.Await(t, "20 events", func() bool {
				for _, e := range r.Drain() {
					k.take(e)
				}
				return len(k.of(jobs.Completed)) >= 20
			})
		},
		"channel": func(t *testing.T, r *jobs.Registry, k *taker) {
			for e := range r.Events() {
				if k.take(e); len(k.of(jobs.Completed)) == 20 {
					return
				}
			}
		},
		"callback": func(t *testing.T, r *jobs.Registry, k *taker) { k.await(t, jobs.Completed, 20) },
	} {
		t.Run(way, func(t *testing.T) {
			k := &taker{}
			opts := &jobs.Options{}
			if way == "callback" {
				opts.OnEvent = k.take
			}
			r := open(t, opts)
			started := make(map[string]bool)
			for i := range 20 {
				job := start(t, r, jobs.Spec{Command: fmt.Sprintf("exit %d", i), Notify: true})
				started[job.ID] = true
				start(t, r, jobs.Spec{Command: "true"}) // This one is not to be told.
			}
			take(t, r, k)
			told := make(map[string]bool)
			for _, e := range k.of(jobs.Completed) {
				assert.True(t, started[e.Job.ID])
				assert.False(t, told[e.Job.ID], "once")
				assert.True(t, e.Job.State.Finished())
				assert.NotNil(t, e.Job.Exit)
				told[e.Job.ID] = true
			}
			assert.Len(t, told, 20)
			assert.Empty(t, r.Drain())
		})
	}
}

// Several see the end at once, and the registry itself.
func TestAnEndThatWasSeenIsInTheHistory(t *testing.T) {
	r := open(t, nil)
	for range testenv.Repeats(3, 20, 200) {
		job := start(t, r, jobs.Spec{Command: "true"})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				_, err := r.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{job.ID}})
				assert.NoError(t, err)
				history, err := r.History(job.ID)
				assert.NoError(t, err)
				if assert.NotEmpty(t, history) {
					assert.Equal(t, jobs.Ended, history[len(history)-1].Kind)
				}
			})
		}
		all.Wait()
	}
}

func TestCompletionIsNotToldToWhoHasSeenIt(t *testing.T) {
	r := open(t, nil)
	sees := map[string]func(id string) error{
		"poll": func(id string) error { _, err := r.Poll(id, nil); return err },
		"log":  func(id string) error { _, err := r.Log(id, jobs.LogOptions{}); return err },
		"wait": func(id string) error { _, err := r.Wait(t.Context(), jobs.WaitOptions{IDs: []string{id}}); return err },
	}
	for how, see := range sees {
		job := start(t, r, jobs.Spec{Command: "echo x", Notify: true})
		settle(t, r, job.ID)
		require.NoError(t, see(job.ID), how)
		assert.Empty(t, r.Drain(), how)
	}
	job := start(t, r, jobs.Spec{Command: "sleep 1000", Notify: true})
	_, err := r.Stop(testenv.Context(t), job.ID)
	require.NoError(t, err)
	assert.Empty(t, r.Drain(), "stop")

	// A look that does not show the end of the log, or a list, does not count.
	job = start(t, r, jobs.Spec{Command: "seq 1 10", Notify: true})
	settle(t, r, job.ID)
	_, err = r.Log(job.ID, jobs.LogOptions{Head: 1})
	require.NoError(t, err)
	_, err = r.List(jobs.Filter{})
	require.NoError(t, err)
	testenv.Await(t, "the event", func() bool { return len(r.Drain()) == 1 })
}

// Also while the event is on its way to somebody who does not take it.
func TestACompletionIsCalledBackFromTheChannel(t *testing.T) {
	r := open(t, nil)
	events := r.Events()
	job := start(t, r, jobs.Spec{Command: "true", Notify: true})
	settle(t, r, job.ID)
	_, err := r.Poll(job.ID, nil)
	require.NoError(t, err)
	last := start(t, r, jobs.Spec{Command: "true", Notify: true})
	assert.Equal(t, last.ID, (<-events).Job.ID)
}

func TestAMatchIsToldWithItsLine(t *testing.T) {
	k := &taker{}
	r := open(t, &jobs.Options{OnEvent: k.take})
	job := start(t, r, jobs.Spec{Command: `echo one; printf 'an \e[31mERROR\e[0m here\n'; read x`, Watch: []string{"WARN", "ERR(OR)?"}, Stdin: true})
	e := k.await(t, jobs.Matched, 1)[0]
	assert.Equal(t, "an ERROR here", e.Line)
	assert.Equal(t, "ERR(OR)?", e.Pattern)
	assert.EqualValues(t, 2, e.Number)
	assert.EqualValues(t, 4, e.Offset)
	assert.Equal(t, job.ID, e.Job.ID)
	require.NoError(t, r.Submit(job.ID, ""))
	end(t, r, job.ID)
	assert.Empty(t, k.of(jobs.Completed))
}

func TestTheLastLineMatchesWithoutANewline(t *testing.T) {
	k := &taker{}
	r := open(t, &jobs.Options{OnEvent: k.take})
	start(t, r, jobs.Spec{Command: `printf 'all done'`, Watch: []string{"^all done$"}})
	k.await(t, jobs.Matched, 1)
}

// A pattern that matches 10 000 lines a second gives a bounded number of events and a
// count, and then none: the job's end is told instead.
func TestAFloodOfMatchesIsCountedAndThenSwitchedOff(t *testing.T) {
	testenv.Slow(t)
	k := &taker{}
	r := open(t, &jobs.Options{OnEvent: k.take, Watch: jobs.WatchLimits{PerJob: 200 * time.Millisecond}})
	job := start(t, r, jobs.Spec{Command: `until [[ -e stop ]]; do seq 1 10; done`, Watch: []string{"."}, Dir: t.TempDir()})
	off := k.await(t, jobs.WatchOff, 1)
	assert.Positive(t, off[0].Count)
	matched := len(k.of(jobs.Matched))
	assert.GreaterOrEqual(t, matched, 3)
	assert.LessOrEqual(t, len(k.of(jobs.Suppressed)), matched)
	for _, e := range k.of(jobs.Suppressed) {
		assert.Positive(t, e.Count)
	}
	now, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.Empty(t, now.Watch)
	require.NoError(t, os.WriteFile(filepath.Join(job.Dir, "stop"), nil, 0o600))
	done := k.await(t, jobs.Completed, 1)
	assert.Equal(t, job.ID, done[0].Job.ID)
	assert.Len(t, k.of(jobs.Matched), matched, "none after that")
	assert.Len(t, k.of(jobs.WatchOff), 1)
}

func TestTheBreakerTellsOfItself(t *testing.T) {
	testenv.Slow(t)
	k := &taker{}
	r := open(t, &jobs.Options{OnEvent: k.take, Watch: jobs.WatchLimits{Burst: 3, BurstWindow: time.Hour, Break: 300 * time.Millisecond}})
	for range 3 + 1 { // And not more: a late one would be told, after the release.
		start(t, r, jobs.Spec{Command: "echo match; read x", Stdin: true, Watch: []string{"match"}})
	}
	tripped := k.await(t, jobs.BreakerTripped, 1)
	assert.Equal(t, 3, tripped[0].Count)
	released := k.await(t, jobs.BreakerReleased, 1)
	assert.Equal(t, 3, len(k.of(jobs.Matched)))
	assert.Equal(t, 1, released[0].Count)
	start(t, r, jobs.Spec{Command: "echo match; read x", Stdin: true, Watch: []string{"match"}})
	k.await(t, jobs.Matched, 4)
}

func TestWithNotifyTheEndIsToldAndMatchesAreNot(t *testing.T) {
	k := &taker{}
	r := open(t, &jobs.Options{OnEvent: k.take})
	job := start(t, r, jobs.Spec{Command: "echo match", Notify: true, Watch: []string{"match"}})
	require.Len(t, job.Warnings, 1)
	assert.Contains(t, job.Warnings[0], "not watched")
	assert.Empty(t, job.Watch)
	k.await(t, jobs.Completed, 1)
	assert.Empty(t, k.of(jobs.Matched))
}

// Nobody hears of a match after the end was told.
func TestNothingIsToldAfterTheEnd(t *testing.T) {
	testenv.NeedProc(t)
	r := open(t, nil)
	job, _ := run(t, r, jobs.Spec{Command: "(setsid bash -c 'exec 9<>fifo; read x <&9; echo match; read x <&9' &) ; echo over", Watch: []string{"match"}, Dir: fifoDir(t)})
	require.True(t, job.Leftover)
	fifo := filepath.Join(job.Dir, "fifo")
	writeFIFO(t, fifo)
	testenv.Await(t, "what comes late", func() bool { return output(t, r, job.ID) == "over\nmatch\n" })
	writeFIFO(t, fifo)
	settle(t, r, job.ID)
	assert.Empty(t, r.Drain())
}
