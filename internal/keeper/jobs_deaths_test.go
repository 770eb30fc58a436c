package keeper_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// supervisorOf is the pid of the supervisor of a job.
func supervisorOf(t *testing.T, dir, id string) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, id, "process.json"))
	require.NoError(t, err)
	var record struct{ Supervisor struct{ PID int } }
	require.NoError(t, json.Unmarshal(b, &record))
	return record.Supervisor.PID
}

// A job, its supervisor and the keeper of its session are killed at random moments, while one of them may stand still. Whoever opens the
// session next is told in a bounded time what became of the job: how it ended, or, if its supervisor was killed, that nobody saw that.
func TestDeathsAroundAJobAtRandomMoments(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := registry(t, testenv.TempDir(t))
	random := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 2))
	spec := &keeper.Spec{Dir: "/tmp"}
	for round := range testenv.Repeats(2, 20, 200) {
		k, err := r.Session(testenv.Context(t), "s", spec)
		require.NoError(t, err)
		j, err := k.StartJob(testenv.Context(t), jobs.Spec{Lifetime: jobs.Detached, Command: fmt.Sprintf("echo begun; sleep 0.0%d; echo over; exit 7", 1+random.IntN(9))})
		require.NoError(t, err)
		job, supervisor, its := j.PID, supervisorOf(t, filepath.Join(r.StateDir("s"), "jobs"), j.ID), pidOf(t, r, k)
		kill := map[int]bool{job: random.IntN(3) == 0, supervisor: random.IntN(3) == 0, its: random.IntN(2) == 0}
		still := []int{supervisor, its, job, 0, 0, 0}[random.IntN(6)]
		what := fmt.Sprintf("round %d: killed: the job %v, its supervisor %v, the keeper %v; stood still: %d of %d, %d, %d",
			round, kill[job], kill[supervisor], kill[its], still, job, supervisor, its)
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		if still > 0 {
			stopped(t, still)
		}
		for pid, yes := range kill { // In any order.
			if yes && pid > 0 {
				_ = syscall.Kill(pid, syscall.SIGKILL) // It may be gone.
			}
		}
		k.Disconnect()
		var on sync.WaitGroup
		if still > 0 {
			pause := time.Duration(random.IntN(60)) * time.Millisecond
			on.Go(func() {
				time.Sleep(pause)
				_ = syscall.Kill(still, syscall.SIGCONT) // As above.
			})
		}

		k, err = r.Session(testenv.Context(t), "s", spec)
		require.NoError(t, err, what)
		h, err := k.Jobs()
		require.NoError(t, err, what)
		end, err := h.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{j.ID}})
		require.NoError(t, err, what)
		switch state := end.Job.State; {
		case state == jobs.Lost:
			assert.True(t, kill[supervisor], what)
		case assert.Equal(t, jobs.Exited, state, what) && end.Job.Exit.Signal != 0:
			assert.True(t, kill[job], what)
			assert.Equal(t, int(syscall.SIGKILL), int(end.Job.Exit.Signal), what)
		default:
			assert.Equal(t, 7, end.Job.Exit.Code, what)
			log, err := h.Log(j.ID, jobs.LogOptions{})
			require.NoError(t, err, what)
			assert.Equal(t, "begun\nover\n", log.Text, what)
		}
		testenv.Await(t, "the job's process to be gone", func() bool { return !testenv.Alive(job) })
		testenv.Await(t, "what the job has left to be gone", func() bool { return h.Forget(j.ID) == nil })
		k.Disconnect()
		on.Wait()
	}
}
