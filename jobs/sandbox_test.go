package jobs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// counting is a transport that is neither the local one nor a sandbox.
type counting struct {
	starts *atomic.Int32
	fail   error
}

func (c counting) Start(ctx context.Context, spec transport.Spec) (transport.Conn, error) {
	c.starts.Add(1)
	if c.fail != nil {
		return nil, c.fail
	}
	return local.Transport{}.Start(ctx, spec)
}

// places are transports that need their program.
func places(t *testing.T) map[string]func(t *testing.T, dir string) transport.Transport {
	return map[string]func(t *testing.T, dir string) transport.Transport{
		"transport": func(*testing.T, string) transport.Transport { return counting{starts: &atomic.Int32{}} },
		"sandbox": func(t *testing.T, dir string) transport.Transport {
			testenv.Slow(t)
			if _, err := sandbox.Probe(t.Context()); err != nil {
				t.Skipf("no sandbox is to be had here: %q", err)
			}
			where, err := sandbox.New(sandbox.WorkspaceWrite(dir))
			require.NoError(t, err)
			return where
		},
	}
}

func TestJobsRunByAnyTransport(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	for name, place := range places(t) {
		t.Run(name, func(t *testing.T) {
			dir := testenv.TempDir(t)
			r := open(t, &jobs.Options{Transport: place(t, dir), Dir: dir})
			job, out := run(t, r, jobs.Spec{Command: "pwd; echo x=$X >&2; read l; echo $?; exit 7", Env: []string{"X=1"}})
			assert.Equal(t, dir+"\nx=1\n1\n", out)
			assert.Equal(t, 7, job.Exit.Code)

			job, _ = run(t, r, jobs.Spec{Command: "kill -9 $$"})
			assert.True(t, job.Exit.Signal == 9 || job.Exit.Code == 137, "%v", job.Exit)

			_, out = run(t, r, jobs.Spec{Command: "x=" + strings.Repeat("a", 200_000) + "; read l; echo ${#x} $? ${REPLY-none}"})
			assert.Equal(t, "200000 1 none\n", out)

			job = start(t, r, jobs.Spec{Command: "cat; echo end", Stdin: true})
			require.NoError(t, r.Submit(job.ID, "hello"))
			until(t, r, job.ID, "hello")
			require.NoError(t, r.CloseStdin(job.ID))
			end(t, r, job.ID)
			assert.Equal(t, "hello\nend\n", output(t, r, job.ID))

			job = start(t, r, jobs.Spec{Command: "trap 'stty size; echo resized' WINCH; tty >/dev/null && stty size; read x; echo got $x; while :; do read -t 0.05 x; done", PTY: true, Size: jobs.Size{Rows: 11, Cols: 44}})
			until(t, r, job.ID, "^11 44$")
			require.NoError(t, r.Submit(job.ID, "typed"))
			until(t, r, job.ID, "^got typed$")
			require.NoError(t, r.Resize(job.ID, jobs.Size{Rows: 12, Cols: 45}))
			until(t, r, job.ID, "^12 45$")
			until(t, r, job.ID, "^resized$")     // Bash ignores a Ctrl-C that comes while stty runs, which survives it.
			_, err := r.Write(job.ID, []byte{3}) // Ctrl-C.
			require.NoError(t, err)
			job = end(t, r, job.ID)
			assert.True(t, job.Exit.Signal == 2 || job.Exit.Code == 130, "%v", job.Exit)

			job = start(t, r, jobs.Spec{Command: "echo up; (setsid sleep 1031 &); sleep 1032"})
			until(t, r, job.ID, "up")
			s, err := r.Stop(testenv.Context(t), job.ID)
			require.NoError(t, err)
			assert.Equal(t, jobs.ByRequest, s.Job.Exit.Stopped)
			assert.Empty(t, s.Outcome.Left)

			_, err = r.Start(testenv.Context(t), jobs.Spec{Command: "true", Lifetime: jobs.Detached})
			assert.ErrorIs(t, err, jobs.ErrNotPossible)
			assert.ErrorContains(t, err, "leave Lifetime empty")

			job = start(t, r, jobs.Spec{Command: "sleep 1033"})
			require.NoError(t, r.Close())
			assert.False(t, testenv.Alive(job.PID))
		})
	}
}

// What the policy forbids is forbidden to a job, which sees nothing of the registry.
func TestAPolicyHoldsForJobs(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	r := open(t, &jobs.Options{Transport: places(t)["sandbox"](t, dir), Dir: dir})
	outside := filepath.Join(testenv.TempDir(t), "x")
	_, out := run(t, r, jobs.Spec{Command: "touch in && echo inside; touch " + outside + " && echo outside; ls " + r.Dir() + " && echo registry; ls /proc/self/fd | wc -w"})
	assert.Contains(t, out, "inside\n")
	assert.NotContains(t, out, "outside\n")
	assert.NotContains(t, out, "registry\n")
	assert.True(t, strings.HasSuffix(out, "\n4\n"), "no descriptor of ours: %q", out)
	assert.NoFileExists(t, outside)
}

func TestATransportThatFailsIsAClearErrorAndNeverRunsHere(t *testing.T) {
	r := open(t, &jobs.Options{Transport: counting{starts: &atomic.Int32{}, fail: os.ErrPermission}})
	_, err := r.Start(testenv.Context(t), jobs.Spec{Command: "true"})
	assert.ErrorIs(t, err, os.ErrPermission)
	list, err := r.List(jobs.Filter{})
	require.NoError(t, err)
	assert.Empty(t, list)
}

// By the records of jobs a job would say which processes are signalled.
func TestAJobThatCouldWriteTheRecordsIsRefused(t *testing.T) {
	testenv.NeedProc(t)
	dir := testenv.TempDir(t)
	where, err := sandbox.New(sandbox.WorkspaceWrite(dir))
	require.NoError(t, err)
	r := openIn(t, filepath.Join(dir, "state"), &jobs.Options{Dir: dir})
	_, err = r.Start(testenv.Context(t), jobs.Spec{Command: "true", Transport: where})
	require.ErrorIs(t, err, sandbox.ErrProtect)
	assert.ErrorContains(t, err, "the state directory "+dir+"/state cannot be protected: FS.Workspace shows it")
	list, err := r.List(jobs.Filter{All: true})
	require.NoError(t, err)
	assert.Empty(t, list)
}
