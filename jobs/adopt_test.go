package jobs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/shell"
)

var _ jobs.Foreground = (*shell.Running)(nil)

// foreground runs a script in the foreground of a shell, which hands it over.
func foreground(t *testing.T, sh *shell.PersistentShell, script string) *shell.Running {
	t.Helper()
	_, err := sh.Do(testenv.Context(t), command.Request{Script: script, Timeout: 50 * time.Millisecond, HandOver: true})
	e, ok := errors.AsType[*shell.HandedOverError](err)
	require.True(t, ok, "%v", err)
	t.Cleanup(func() { _ = e.Command.Close() })
	return e.Command
}

func shellIn(t *testing.T, dir string) *shell.PersistentShell {
	t.Helper()
	sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: dir})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })
	return sh
}

func TestAForegroundCommandBecomesAJob(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	sh := shellIn(t, dir)
	r := open(t, nil)
	running := foreground(t, sh, "echo before; until [[ -e go ]]; do sleep 0.01; done; echo after; exit 9")
	job, err := r.Adopt(testenv.Context(t), running, jobs.Spec{Task: "build", Notify: true})
	require.NoError(t, err)
	assert.Equal(t, jobs.Running, job.State)
	assert.Equal(t, "build", job.Task)
	assert.Equal(t, dir, job.Dir)
	assert.Contains(t, job.Command, "echo before")
	assert.GreaterOrEqual(t, job.Elapsed, 50*time.Millisecond)
	until(t, r, job.ID, "before")

	res, err := sh.Run(context.Background(), "echo free")
	require.NoError(t, err)
	assert.Equal(t, "free\n", res.Stdout.String())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	var done []jobs.Event
	testenv.Await(t, "its completion", func() bool {
		done = append(done, r.Drain()...)
		return len(done) > 0
	})
	assert.Equal(t, jobs.Completed, done[0].Kind)
	job = end(t, r, job.ID)
	assert.Equal(t, 9, job.Exit.Code)
	assert.Equal(t, "before\nafter\n", output(t, r, job.ID))
}

// Nobody reads what an adopted command prints, if its supervisor is gone.
func TestAnAdoptedCommandOutlivesItsSupervisorForAMomentOnly(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	sh := shellIn(t, dir)
	r := open(t, nil)
	job, err := r.Adopt(testenv.Context(t), foreground(t, sh, "until [[ -e go ]]; do sleep 0.01; done; head -c 1000000 /dev/zero"), jobs.Spec{})
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(supervisorOf(t, r.Dir(), job.ID), syscall.SIGKILL))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	assert.Equal(t, jobs.Lost, end(t, r, job.ID).State)
	require.NoError(t, r.Close())
}

func TestACommandThatHasEndedIsStoppedAtOnceThoughNobodyReads(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	sh := shellIn(t, dir)
	running := foreground(t, sh, "sleep 0.1; head -c 1000000 /dev/zero; touch ended")
	testenv.Await(t, "its end", func() bool {
		_, err := os.Stat(filepath.Join(dir, "ended"))
		return err == nil
	})
	running.Stop(nil)
	require.NoError(t, running.Close())
}

func TestAnAdoptedCommandIsStoppedAsAJobIs(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	sh := shellIn(t, dir)
	r := open(t, nil)
	ctx := testenv.Context(t)
	job, err := r.Adopt(ctx, foreground(t, sh, "echo x; sleep 1021; touch X"), jobs.Spec{})
	require.NoError(t, err)
	s, err := r.Stop(ctx, job.ID)
	require.NoError(t, err)
	assert.Equal(t, jobs.Exited, s.Job.State)
	assert.Equal(t, jobs.ByRequest, s.Job.Exit.Stopped)
	assert.Equal(t, 130, s.Job.Exit.Code)

	job, err = r.Adopt(ctx, foreground(t, sh, "sleep 1022; touch X"), jobs.Spec{Timeout: 50 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, jobs.ByTimeout, end(t, r, job.ID).Exit.Stopped)

	job, err = r.Adopt(ctx, foreground(t, sh, "sleep 1023; touch X"), jobs.Spec{})
	require.NoError(t, err)
	running := foreground(t, sh, "sleep 1024; touch X")
	twice := foreground(t, sh, "sleep 1025")
	again, err := r.Adopt(ctx, twice, jobs.Spec{})
	require.NoError(t, err)
	_, err = r.Adopt(ctx, twice, jobs.Spec{})
	assert.ErrorIs(t, err, jobs.ErrNotPossible)
	assert.ErrorContains(t, err, again.ID)
	for _, spec := range []jobs.Spec{{Command: "x"}, {Dir: "/"}, {PTY: true}, {Lifetime: jobs.Detached}} {
		_, err = r.Adopt(ctx, running, spec)
		assert.ErrorIs(t, err, jobs.ErrNotPossible)
	}
	require.NoError(t, r.Close())
	assert.False(t, testenv.Alive(job.PID))
	_, err = r.Adopt(ctx, running, jobs.Spec{})
	assert.ErrorIs(t, err, jobs.ErrClosed)
	assert.True(t, testenv.Alive(running.PID()), "it is still the caller's")
	assert.NoFileExists(t, filepath.Join(dir, "X"))
}
