package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// crashingProgram starts jobs, polls and drains, until it is killed. What it knows for
// sure it writes into the directory of the truth: which jobs have started, and whose end
// it was told.
func crashingProgram() {
	dir, truth := os.Args[1], os.Args[2]
	note := func(file, line string) {
		f, err := os.OpenFile(filepath.Join(truth, file), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			panic(err)
		}
		_, _ = f.WriteString(line + "\n") // Who is killed here has not.
		_ = f.Close()                     // As above.
	}
	r, err := jobs.Open(dir, &jobs.Options{MaxFinished: 1 << 20, Retain: 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	for {
		lines, code := rand.IntN(40), rand.IntN(256)
		lifetime := jobs.Detached
		if rand.IntN(3) == 0 {
			lifetime = jobs.WithProgram
		}
		job, err := r.Start(context.Background(), jobs.Spec{
			// Each line is in the truth after it was printed.
			Command: fmt.Sprintf(`t=%s/$LIMPET_JOB; for ((i = 0; i < %d; i++)); do echo "line $i of %d"; echo $i >>"$t"; ((i %% 8)) || read -t 0.002 x <> <(:); done; exit %d`,
				truth, lines, lines, code),
			Labels:   map[string]string{"lines": strconv.Itoa(lines), "code": strconv.Itoa(code)},
			Lifetime: lifetime, Notify: true, Watch: nil,
		})
		if err != nil {
			panic(err)
		}
		note("started", job.ID)
		// What is drained, and not noted before a kill, is lost to the test, which has to know of it.
		note("drains", "begins")
		var told []string
		for _, e := range r.Drain() {
			told = append(told, e.Job.ID)
		}
		if len(told) > 0 {
			note("told", strings.Join(told, "\n"))
		}
		note("drains", "ends")
		if list, _ := r.List(jobs.Filter{States: []jobs.State{jobs.Running}}); len(list) > 0 {
			id := list[rand.IntN(len(list))].ID
			note("polls", id)
			_, _ = r.Poll(id, nil) // It may have ended: then this has told its end.
		}
	}
}

// Programs are killed at random moments, also while they recover from the kill before,
// on a machine that has too much to do: with one another. Then every job is compared
// with what it has itself said of its life.
func TestNoKillLosesAnything(t *testing.T) {
	testenv.NeedProc(t)
	testenv.Slow(t)
	const many = 4
	kills := testenv.Repeats(0, 8, 50) // of each
	var byProgram atomic.Int64
	t.Run("programs", func(t *testing.T) {
		for range many {
			t.Run("program", func(t *testing.T) {
				t.Parallel()
				killAtRandom(t, kills, &byProgram)
			})
		}
	})
	assert.Positive(t, byProgram.Load())
}

// killAtRandom kills a program as often. It counts the jobs that ended by that.
func killAtRandom(t *testing.T, kills int, byProgram *atomic.Int64) {
	dir, truth := t.TempDir(), t.TempDir()
	// The moments are spread over as long as this machine takes for some starts, whatever
	// else it has to do.
	began := time.Now()
	first := play(t, "crash", dir, truth)
	testenv.Await(t, "a first start", func() bool {
		_, err := os.Stat(filepath.Join(truth, "started"))
		return err == nil
	})
	spread := max(4*time.Since(began), 300*time.Millisecond)
	// An event that was drained, and not noted before the kill, is nobody's any more. It is of a job that
	// nobody had been told of when a program was killed while it drained.
	drained, drains := false, 0 // whether one was, and how much of drains has been looked at
	lost := make(map[string]bool)
	kill := func(p *program) {
		p.kill()
		noted := lines(t, truth, "drains")
		if len(noted) > drains && noted[len(noted)-1] == "begins" {
			drained = true
			for _, id := range lines(t, truth, "started") {
				lost[id] = true
			}
		}
		drains = len(noted)
		for _, id := range lines(t, truth, "told") {
			delete(lost, id)
		}
	}
	kill(first)
	for range kills {
		p := play(t, "crash", dir, truth)
		wait := time.Duration(rand.Int64N(int64(spread)))
		select {
		case <-time.After(wait):
		case <-t.Context().Done():
		}
		kill(p)
	}
	r := openIn(t, dir, &jobs.Options{MaxFinished: 1 << 20, Retain: 24 * time.Hour})
	list, err := r.List(jobs.Filter{})
	require.NoError(t, err)
	told := make(map[string]bool)
	tell := func(id string) {
		assert.False(t, told[id], "%s was told twice", id)
		told[id] = true
	}
	for _, id := range lines(t, truth, "told") {
		tell(id)
	}
	started := lines(t, truth, "started")
	for _, id := range lines(t, truth, "polls") {
		lost[id] = true
	}
	testenv.Await(t, "the ends that nobody was told", func() bool {
		for _, e := range r.Drain() {
			tell(e.Job.ID)
		}
		return !slices.ContainsFunc(list, func(job jobs.Job) bool {
			return !told[job.ID] && !lost[job.ID] && (!drained || slices.Contains(started, job.ID))
		})
	})
	listed := make(map[string]bool)
	ended := 0
	for _, job := range list {
		listed[job.ID] = true
		job = end(t, r, job.ID)
		if check(t, r, job, truth) {
			ended++
		}
	}
	for _, id := range started {
		assert.True(t, listed[id], "%s has started", id)
	}
	t.Logf("%d kills, %d jobs, of which %d ended with their program, %d starts returned, %d ends told; %d may be lost, of a program that was killed while it drained: %v", kills, len(list), ended, len(started), len(told), len(lost), drained)
	assert.NotEmpty(t, started)
	byProgram.Add(int64(ended))
}

// check compares a job with the truth, and reports whether it ended with its program.
func check(t *testing.T, r *jobs.Registry, job jobs.Job, truth string) (byProgram bool) {
	t.Helper()
	n, err := strconv.Atoi(job.Labels["lines"])
	require.NoError(t, err)
	var want strings.Builder
	for i := range n {
		fmt.Fprintf(&want, "line %d of %d\n", i, n)
	}
	got := output(t, r, job.ID)
	if job.State == jobs.Exited && job.Exit.Stopped == "" {
		assert.Equal(t, job.Labels["code"], strconv.Itoa(job.Exit.Code), job.ID)
		assert.Equal(t, want.String(), got, job.ID)
		return false
	}
	if job.State == jobs.Failed {
		// Its start had not returned: nobody was told of it, and it has done nothing.
		assert.NotContains(t, lines(t, truth, "started"), job.ID)
		assert.Empty(t, got)
		return false
	}
	// It was to live with its program, or its start had not returned.
	assert.Equal(t, jobs.ByProgram, job.Exit.Stopped, "%s: %s %s", job.ID, job.State, job.Exit)
	assert.True(t, strings.HasPrefix(want.String(), got), "%s: %q", job.ID, got)
	return true
}

// lines are those of a file, none if it is not there.
func lines(t *testing.T, dir, file string) []string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, file))
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return strings.Fields(string(b))
}
