package jobs_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

// killSupervisor kills the supervisor of a job, as the kernel does when memory is short.
func killSupervisor(t *testing.T, dir, id string) {
	t.Helper()
	pid := supervisorOf(t, dir, id)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	testenv.Await(t, "the supervisor's end", func() bool { return !testenv.Alive(pid) })
}

func supervisorOf(t *testing.T, dir, id string) (pid int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, id, "process.json"))
	require.NoError(t, err)
	var record struct{ Supervisor struct{ PID int } }
	require.NoError(t, json.Unmarshal(b, &record))
	return record.Supervisor.PID
}

// leaves starts processes, each in a way of its own to leave the job, and prints their pids.
const leaves = `sleep 1001 & echo $!; (sleep 1002 & echo $!); setsid sleep 1003 & echo $!; `

// pidsOf waits for as many pids in what the job prints.
func pidsOf(t *testing.T, r *jobs.Registry, id string, n int) (pids []int) {
	t.Helper()
	testenv.Await(t, "the pids", func() bool { return strings.Count(output(t, r, id), "\n") == n })
	for _, field := range strings.Fields(output(t, r, id)) {
		pid, err := strconv.Atoi(field)
		require.NoError(t, err)
		pids = append(pids, pid)
	}
	return pids
}

func sortedPIDs(job jobs.Job) (pids []int) {
	for _, p := range job.Orphans {
		pids = append(pids, p.PID)
	}
	slices.Sort(pids)
	return pids
}

func TestTheProcessesOfAKilledSupervisorAreShownAndStopped(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for _, lifetime := range []jobs.Lifetime{jobs.Detached, jobs.WithProgram} {
		r := open(t, nil)
		job := start(t, r, jobs.Spec{Command: leaves + "echo $$; wait", Lifetime: lifetime})
		pids := pidsOf(t, r, job.ID, 4)
		assert.Empty(t, job.Orphans)
		killSupervisor(t, r.Dir(), job.ID)

		first := jobs.Process{PID: pids[0], Command: "sleep 1001"}
		slices.Sort(pids)
		reader := openIn(t, r.Dir(), &jobs.Options{ReadOnly: true})
		for _, from := range []*jobs.Registry{r, reader} {
			job, err := from.Get(job.ID)
			require.NoError(t, err)
			assert.Equal(t, jobs.Running, job.State)
			assert.Equal(t, pids, sortedPIDs(job))
			assert.Contains(t, job.Orphans, first)
		}
		assert.ErrorIs(t, r.Forget(job.ID), jobs.ErrRunning)
		s, err := r.Stop(testenv.Context(t), job.ID)
		require.NoError(t, err)
		assert.Equal(t, jobs.Lost, s.Job.State)
		assert.Equal(t, jobs.ByRequest, s.Job.Exit.Stopped)
		assert.Contains(t, s.Job.Exit.Why, "its supervisor was killed")
		assert.Empty(t, s.Job.Orphans)
		for _, pid := range pids {
			assert.False(t, testenv.Alive(pid), pid)
		}
		require.NoError(t, r.Forget(job.ID))
		require.NoError(t, r.Close())
	}
}

// The job has ended, and what it has started has not.
func TestTheChildrenOfALostJobAreShownAndStopped(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: leaves + "echo $$; wait", Lifetime: jobs.Detached})
	pids := pidsOf(t, r, job.ID, 4)
	killSupervisor(t, r.Dir(), job.ID)
	require.NoError(t, syscall.Kill(pids[3], syscall.SIGKILL))
	job = end(t, r, job.ID)
	assert.Equal(t, jobs.Lost, job.State)

	pids = pids[:3]
	slices.Sort(pids)
	job, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.Contains(t, job.Exit.Why, "its supervisor was killed")
	assert.True(t, job.Leftover)
	assert.Equal(t, pids, sortedPIDs(job))
	assert.ErrorIs(t, r.Forget(job.ID), jobs.ErrRunning)
	active, err := r.Active(jobs.Filter{})
	require.NoError(t, err)
	assert.Equal(t, 1, active)

	stopped, err := r.StopAll(testenv.Context(t), jobs.Filter{All: true})
	require.NoError(t, err)
	require.Len(t, stopped, 1)
	for _, pid := range pids {
		assert.False(t, testenv.Alive(pid), pid)
	}
	_, err = r.Stop(testenv.Context(t), job.ID)
	assert.ErrorIs(t, err, jobs.ErrFinished)
	job, err = r.Get(job.ID)
	require.NoError(t, err)
	assert.Contains(t, job.Exit.Why, "its supervisor was killed", "it is still known")
	require.NoError(t, r.Forget(job.ID))
}

// The supervisor has recorded the end, and waited for what the job had left.
func TestWhatAJobHasLeftIsStoppedWithoutItsSupervisor(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	r := open(t, nil)
	job, _ := run(t, r, jobs.Spec{Command: leaves + "exit 3", Lifetime: jobs.Detached})
	pids := pidsOf(t, r, job.ID, 3)
	killSupervisor(t, r.Dir(), job.ID)
	job, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.True(t, job.Leftover)
	assert.Len(t, job.Orphans, 3)
	s, err := r.Stop(testenv.Context(t), job.ID)
	require.NoError(t, err)
	assert.Equal(t, jobs.Exited, s.Job.State)
	assert.Equal(t, 3, s.Job.Exit.Code)
	assert.False(t, s.Job.Leftover)
	for _, pid := range pids {
		assert.False(t, testenv.Alive(pid), pid)
	}
}

func TestTheChildrenOfALostJobEndWithItsProgram(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := t.TempDir()
	p := play(t, "hold", dir)
	id := p.start(t, jobs.Spec{Command: leaves + "echo $$; wait"})
	reader := openIn(t, dir, &jobs.Options{ReadOnly: true})
	pids := pidsOf(t, reader, id, 4)
	killSupervisor(t, dir, id)
	p.kill()
	require.NoError(t, syscall.Kill(pids[3], syscall.SIGKILL))
	r := openIn(t, dir, nil)
	testenv.Await(t, "the end of its children", func() bool { return !slices.ContainsFunc(pids, testenv.Alive) })
	job := end(t, r, id)
	assert.Equal(t, jobs.Lost, job.State)
}

// A test binary that is killed takes its jobs with it, though they outlive any other program.
func TestNoJobOutlivesAKilledTest(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := t.TempDir()
	p := play(t, "reap", dir)
	id := p.start(t, jobs.Spec{Command: leaves + "echo $$; wait", Lifetime: jobs.Detached})
	pids := pidsOf(t, openIn(t, dir, &jobs.Options{ReadOnly: true}), id, 4)
	pids = append(pids, supervisorOf(t, dir, id))
	for _, pid := range pids {
		assert.True(t, testenv.Alive(pid), pid)
	}
	p.kill()
	testenv.Await(t, "the end of the job", func() bool { return !slices.ContainsFunc(pids, testenv.Alive) })
}

// It was seen running long after it had printed something, and who finds it lost says nothing
// else.
func TestItIsNotKnownWhenAJobEndedThatNobodyLookedAfter(t *testing.T) {
	testenv.NeedProc(t)
	dir := t.TempDir()
	p := play(t, "hold", dir)
	id := p.start(t, jobs.Spec{Command: "echo $$; exec sleep 1000", Lifetime: jobs.Detached})
	reader := openIn(t, dir, &jobs.Options{ReadOnly: true})
	pid := pidsOf(t, reader, id, 1)[0]
	p.kill()
	killSupervisor(t, dir, id)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	testenv.Await(t, "the end of the job", func() bool { return !testenv.Alive(pid) })

	owner := openIn(t, dir, nil)
	settle(t, owner, id)
	for _, r := range []*jobs.Registry{reader, owner} {
		job, err := r.Get(id)
		require.NoError(t, err)
		assert.Equal(t, jobs.Lost, job.State)
		assert.Zero(t, job.Exit.Ended)
		assert.Zero(t, job.Elapsed)
		assert.NotZero(t, job.LastOutput)
	}
}

// An owner that has shown how long a job had run does not report less afterwards.
func TestALostJobHasRunForAsLongAsItWasShown(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	k := &taker{}
	r := open(t, &jobs.Options{OnEvent: k.take})
	job := start(t, r, jobs.Spec{Command: "echo $$; exec sleep 1000", Lifetime: jobs.Detached, Watch: []string{"."}})
	pid := pidsOf(t, r, job.ID, 1)[0]
	k.await(t, jobs.Matched, 1) // Its owner has seen it run.
	killSupervisor(t, r.Dir(), job.ID)
	shown, err := r.Get(job.ID)
	require.NoError(t, err)
	require.Equal(t, jobs.Running, shown.State)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	testenv.Await(t, "the record of its end", func() bool {
		job, err = r.Get(job.ID)
		require.NoError(t, err)
		return job.State == jobs.Lost && !job.Exit.Ended.IsZero()
	})
	assert.Greater(t, job.Elapsed, shown.Elapsed)
}
