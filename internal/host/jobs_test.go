package host_test

import (
	"errors"
	"fmt"
	"io/fs"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
)

// jobsOf are those of a session by their labels of one name.
func jobsOf(t *testing.T, s session.Handle, label string) map[string][]jobs.Job {
	t.Helper()
	all, err := s.Jobs()
	require.NoError(t, err)
	list, err := all.List(jobs.Filter{All: true})
	require.NoError(t, err)
	by := make(map[string][]jobs.Job)
	for _, one := range list {
		by[one.Labels[label]] = append(by[one.Labels[label]], one)
	}
	return by
}

// Of a request that has not got there, and of an answer that has not got here, the caller knows the same.
func TestAJobWhoseStartIsCutMayHaveStarted(t *testing.T) {
	testenv.Slow(t)
	tap, there := tapped(t)
	ctx := testenv.Context(t)
	h := dial(t, tap.Target(), nil)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	here, err := there.Session(ctx, "s", nil)
	require.NoError(t, err)
	t.Cleanup(here.Disconnect)

	start := func(of string) <-chan error {
		before, ended := tap.Requests(), make(chan error, 1)
		go func() {
			_, err := s.StartJob(ctx, jobs.Spec{Command: "sleep 1000", Labels: map[string]string{"of": of}})
			ended <- err
		}()
		testenv.Await(t, "the request", func() bool { return tap.Requests() > before })
		return ended
	}
	unknown := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, host.ErrLost)
		require.ErrorIs(t, err, wire.ErrMayHaveStarted)
		require.ErrorContains(t, err, `start a job in`)
	}

	tap.Hold(testenv.TapRequests)
	ended := start("a request")
	tap.Cut()
	tap.Release(testenv.TapRequests)
	unknown(<-ended)
	_, err = h.List(ctx, false)
	require.NoError(t, err, "it is dialled again")

	tap.Hold(testenv.TapAnswers)
	ended = start("an answer")
	all, err := here.Jobs()
	require.NoError(t, err)
	testenv.Await(t, "the job, whose start is not undone from then on", func() bool {
		for _, one := range jobsOf(t, here, "of")["an answer"] {
			events, err := all.History(one.ID)
			require.NoError(t, err)
			return slices.ContainsFunc(events, func(e jobs.Event) bool { return e.Kind == jobs.Started })
		}
		return false
	})
	tap.Cut()
	tap.Release(testenv.TapAnswers)
	unknown(<-ended)

	job, err := s.StartJob(ctx, jobs.Spec{Command: "sleep 1000", Labels: map[string]string{"of": "none"}})
	require.NoError(t, err, "it is dialled again")
	list := jobsOf(t, s, "of")
	assert.Empty(t, list["a request"])
	assert.Len(t, list["an answer"], 1)
	require.Len(t, list["none"], 1)
	assert.Equal(t, job.ID, list["none"][0].ID)
	require.NoError(t, h.Close(ctx, s))
}

// The connection is cut before, or while, a job is started. It has started once if the caller has it, and once at most if not.
func TestJobsWhoseStartIsCutStartOnce(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ran := filepath.Join(testenv.TempDir(t), "ran")
	h := dial(t, m.target, &host.Options{Times: short})
	s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	told := make(map[string]string) // what the caller was told of each: an ID, or nothing
	for round := range testenv.Repeats(2, 4, 40) {
		pid := connectOf(h)
		cut := make(chan struct{})
		go func() {
			defer close(cut)
			time.Sleep(time.Duration(mathrand.IntN(60)) * time.Millisecond) // It is drawn, and not awaited.
			_ = syscall.Kill(pid, syscall.SIGKILL)                          // It is there until then.
		}()
		if round%2 == 1 {
			<-cut
		}
		name := fmt.Sprint(round)
		job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "echo " + name + " >>" + ran, Labels: map[string]string{"round": name}})
		if told[name] = job.ID; err != nil {
			told[name] = ""
			require.ErrorIs(t, err, host.ErrLost)
			require.ErrorIs(t, err, wire.ErrMayHaveStarted)
		}
		<-cut
		_, err = h.List(testenv.Context(t), false)
		require.NoError(t, err, "it is dialled again")
	}
	all, err := s.Jobs()
	require.NoError(t, err)
	for _, id := range told {
		if id != "" {
			_, err := all.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{id}})
			require.NoError(t, err)
		}
	}
	list := jobsOf(t, s, "round")
	b, err := os.ReadFile(ran)
	if !errors.Is(err, fs.ErrNotExist) { // None may have started.
		require.NoError(t, err)
	}
	lost := 0
	for name, id := range told {
		times := strings.Count("\n"+string(b), "\n"+name+"\n")
		if id == "" {
			lost++
			assert.LessOrEqual(t, len(list[name]), 1, "round %s", name)
			assert.LessOrEqual(t, times, 1, "round %s", name)
		} else if assert.Len(t, list[name], 1, "round %s", name) {
			assert.Equal(t, id, list[name][0].ID, "round %s", name)
			assert.Equal(t, 1, times, "round %s", name)
		}
	}
	t.Logf("%d starts, of %d of which the answer was lost", len(told), lost)
}
