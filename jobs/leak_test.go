package jobs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

func TestManyJobsLeaveNothing(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, &jobs.Options{MaxFinished: 10})
	once := func(i int) {
		spec := jobs.Spec{Command: "echo x; exit 1", Notify: true}
		switch i % 4 {
		case 1:
			spec = jobs.Spec{Command: "cat", Stdin: true}
		case 2:
			spec = jobs.Spec{Command: "cat", PTY: true, Lifetime: jobs.Detached}
		case 3:
			spec = jobs.Spec{Command: "sleep 1000", Watch: []string{"x"}}
		}
		job, err := r.Start(t.Context(), spec)
		if !assert.NoError(t, err) {
			return
		}
		if i%4 != 0 {
			_, err = r.Stop(t.Context(), job.ID)
		} else {
			_, err = r.Wait(t.Context(), jobs.WaitOptions{IDs: []string{job.ID}})
		}
		if !errors.Is(err, jobs.ErrNotFound) { // Others have finished behind it.
			assert.NoError(t, err)
		}
	}
	settled := func() (goroutines, fds int) {
		testenv.Await(t, "supervisors to end", func() bool { return len(testenv.Children()) == 0 })
		return runtime.NumGoroutine(), testenv.FDs(t)
	}
	for i := range 20 {
		once(i)
	}
	goroutines, fds := settled()
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := range testenv.Repeats(5, 12, 125) {
				once(i + worker)
			}
		})
	}
	all.Wait()
	_ = r.Drain()
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		t.Logf("there were %d goroutines and %d descriptors, and are:", goroutines, fds)
		_ = pprof.Lookup("goroutine").WriteTo(t.Output(), 1) // The log cannot fail.
		names, _ := filepath.Glob("/proc/self/fd/*")         // The pattern is right.
		for _, name := range names {
			to, _ := os.Readlink(name) // That of the list is gone.
			t.Log(name, to)
		}
	})
	testenv.Await(t, "no more goroutines and descriptors than before", func() bool {
		g, f := settled()
		return g <= goroutines+2 && f <= fds+2
	})
	assert.Zero(t, testenv.Zombies())
	testenv.Await(t, "the last of those that are too many to be forgotten", func() bool {
		entries, err := os.ReadDir(r.Dir())
		require.NoError(t, err)
		return len(entries) <= 12
	})
}

// A program may keep many of them, and for long.
func TestAFinishedJobHoldsNoDescriptor(t *testing.T) {
	testenv.NeedProc(t)
	r := open(t, nil)
	run := func() {
		job := start(t, r, jobs.Spec{Command: "true"})
		_, err := r.Wait(t.Context(), jobs.WaitOptions{IDs: []string{job.ID}})
		require.NoError(t, err)
	}
	run()
	testenv.Await(t, "its supervisor to end", func() bool { return len(testenv.Children()) == 0 })
	before := testenv.FDs(t)
	for range 10 {
		run()
	}
	testenv.Await(t, "no more descriptors than before", func() bool { return testenv.FDs(t) <= before })
	list, err := r.List(jobs.Filter{})
	require.NoError(t, err)
	assert.Len(t, list, 11)
}

// Many jobs, 64 of them in the night, that each write 10 MB/s, or as much as there is a processor for: memory and
// disk stay bounded, and each can be looked at meanwhile.
func TestManyLoudJobsStayBounded(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	many := testenv.Repeats(8, 12, 64)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data"), []byte(strings.Repeat(strings.Repeat("x", 999)+"\n", 1000)), 0o600))
	r := open(t, nil)
	var ids []string
	for i := range many {
		job := start(t, r, jobs.Spec{Command: fmt.Sprintf(`until [[ -e go ]]; do sleep 0.1; done; while [[ -e go ]]; do cat data; echo %d; sleep 0.1; done`, i), Dir: dir})
		ids = append(ids, job.ID)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	for _, id := range ids {
		testenv.Await(t, "much output", func() bool {
			job, err := r.Get(id)
			require.NoError(t, err)
			return job.Output.End > 1<<20
		})
	}
	for i, id := range ids[:8] {
		p, err := r.Poll(id, nil)
		require.NoError(t, err)
		assert.Positive(t, p.Dropped)
		found, err := r.Search(id, fmt.Sprintf("^%d$", i), jobs.SearchOptions{From: p.Job.Output.End - 1<<20 - 100})
		require.NoError(t, err)
		assert.Len(t, p.Last, 10)
		assert.LessOrEqual(t, len(found.Matches), 2)
	}
	assert.LessOrEqual(t, testenv.Allocated(r.Dir()), int64(many*(400<<10)))
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	assert.Less(t, stats.HeapInuse, uint64(256<<20))
	largest := int64(0)
	for _, st := range testenv.Children() {
		largest = max(largest, residentOf(t, st.PID))
	}
	assert.Less(t, largest, int64(128<<20), "a supervisor, with a race detector")
	require.NoError(t, os.Remove(filepath.Join(dir, "go")))
	t.Logf("heap %d KiB, disk %d KiB, the largest supervisor %d KiB", stats.HeapInuse>>10, testenv.Allocated(r.Dir())>>10, largest>>10)
}

func residentOf(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0 // It has ended.
	}
	pages, err := strconv.ParseInt(strings.Fields(string(b))[1], 10, 64)
	require.NoError(t, err)
	return pages * int64(os.Getpagesize())
}
