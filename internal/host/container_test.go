package host_test

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/testenv/container"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
)

// engineOf is one of this machine, or one that is started for the test; else the test is skipped.
func engineOf(t *testing.T, name string) *container.Engine {
	t.Helper()
	e, err := container.Open(name, os.Args[0])
	if errors.Is(err, container.ErrNone) {
		t.Skipf("no %s: %v", name, err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	for _, entry := range e.Env {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	return e
}

// running starts a container of a name that no other test has, which sees directories of this machine, and returns it.
func running(t *testing.T, e *container.Engine, sees ...string) (name string) {
	t.Helper()
	name = "limpet-test-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	require.NoError(t, e.Run(name, sees...))
	t.Cleanup(func() { require.NoError(t, e.Remove(name)) })
	return name
}

func TestInAContainer(t *testing.T) {
	testenv.Slow(t)
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			if engine == "docker" { // Its daemon is to be started, and what is said to both is the same.
				testenv.OnlyAll(t)
			}
			e := engineOf(t, engine)
			name := running(t, e)
			c := box{engine + "://" + name, func(argv0 string, argv ...string) *exec.Cmd {
				return e.Command(append([]string{"exec", name, argv0}, argv...)...)
			}, "/tmp"}
			c.keeps(t)
			c.jobsSurviveCuts(t)
			mark := marked(t)
			c.cutAtRandomMoments(t, testenv.Repeats(2, 5, 100), func(pid int) func(syscall.Signal) {
				return func(sig syscall.Signal) {
					_ = c.in("kill", "-"+strconv.Itoa(int(sig)), strconv.Itoa(pid)).Run() // It may be gone.
				}
			})
			testenv.AwaitNone(t, mark, "cut at random moments, and closed") // Here: there the environment is the container's.
			c.awaitNoLimpet(t)
			c.isNotAnother(t, func() {
				require.NoError(t, e.Remove(name))
				require.NoError(t, e.Run(name))
			})
			assert.ErrorContains(t, failing(t, engine+"://no-such-container", nil), "is the name right?")
			out, err := c.in("rm", "/bin/sh").CombinedOutput()
			require.NoError(t, err, string(out))
			assert.ErrorContains(t, failing(t, c.target, nil), "; the container has no sh")
			out, err = e.Command("stop", "-t", "0", name).CombinedOutput()
			require.NoError(t, err, string(out))
			assert.ErrorContains(t, failing(t, c.target, nil), "; start it: ")
		})
	}
}

func TestJobsSurviveCuts(t *testing.T) {
	testenv.Slow(t)
	box{machineOf(t, "sh").target, exec.Command, testenv.TempDir(t)}.jobsSurviveCuts(t)
	startSSHD(t)
	box{"ssh://there", exec.Command, testenv.TempDir(t)}.jobsSurviveCuts(t)
}

// box is a machine of its own: a container, or a pod.
type box struct {
	target string
	in     func(name string, args ...string) *exec.Cmd // a command there
	dir    string                                      // for files
}

// keeps has a session be found again by another connection.
func (c box) keeps(t *testing.T) {
	t.Helper()
	ctx := testenv.Context(t)
	h := dial(t, c.target, nil)
	place := h.Hello().Place
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = s.Run(ctx, "cd /tmp; x=1")
	require.NoError(t, err)
	require.NoError(t, h.Disconnect())
	h = dial(t, c.target, nil)
	assert.Equal(t, place, h.Hello().Place)
	s, err = h.Session(ctx, "s", nil)
	require.NoError(t, err, "it is kept there")
	res, err := s.Run(ctx, "echo $PWD $x; ls -d /bin/busybox")
	require.NoError(t, err)
	assert.Equal(t, "/tmp 1\n/bin/busybox\n", res.Stdout.String())
	require.NoError(t, h.Close(ctx, s))
	require.NoError(t, h.Disconnect())
}

// jobsSurviveCuts starts jobs and cuts the connection before each thing that is done with them.
func (c box) jobsSurviveCuts(t *testing.T) {
	t.Helper()
	ctx := testenv.Context(t)
	h := dial(t, c.target, nil)
	s, err := h.Session(ctx, "jobs", &keeper.Spec{})
	require.NoError(t, err)
	all, err := s.Jobs()
	require.NoError(t, err)
	job, err := s.StartJob(ctx, jobs.Spec{Command: "echo begun; until [[ -e " + c.dir + "/go ]]; do sleep 0.05; done; echo went; exit 3"})
	require.NoError(t, err)
	other, err := s.StartJob(ctx, jobs.Spec{Command: "sleep 1000"})
	require.NoError(t, err)
	cut := func() {
		out, err := c.in("kill", "-9", strconv.Itoa(connectOf(h))).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	cut()
	res, err := s.Run(ctx, "echo >"+c.dir+"/go")
	require.NoError(t, err)
	assert.Zero(t, res.ExitCode)
	cut()
	ended, err := all.Wait(ctx, jobs.WaitOptions{IDs: []string{job.ID}})
	require.NoError(t, err)
	require.NotNil(t, ended.Job.Exit)
	assert.Equal(t, 3, ended.Job.Exit.Code)
	cut()
	log, err := all.Log(job.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, "begun\nwent\n", log.Text)
	cut()
	stopped, err := all.Stop(ctx, other.ID)
	require.NoError(t, err)
	require.NotNil(t, stopped.Job.Exit)
	assert.Equal(t, jobs.ByRequest, stopped.Job.Exit.Stopped)
	require.NoError(t, h.Close(ctx, s))
	require.NoError(t, h.Disconnect())
}

// isNotAnother has another machine take the name of one that is connected, which is not taken for it.
func (c box) isNotAnother(t *testing.T, replace func()) {
	t.Helper()
	ctx := testenv.Context(t)
	h := dial(t, c.target, nil)
	s, err := h.Session(ctx, "gone", &keeper.Spec{})
	require.NoError(t, err)
	replace()
	_, err = s.Run(ctx, "echo >/tmp/ran")
	require.ErrorIs(t, err, host.ErrLost)
	assert.ErrorContains(t, err, "another machine, or container, answers there")
	assert.Error(t, c.in("ls", "/tmp/ran").Run(), "nothing ran there")
}

// The promises of sessions, each in a container of its own.
func TestSessionsInAContainerKeepThePromises(t *testing.T) {
	testenv.OnlyAll(t)
	for _, engine := range []string{"docker", "podman"} {
		t.Run(engine, func(t *testing.T) {
			e := engineOf(t, engine)
			sessiontest.Run(t, func(t *testing.T) session.Handle {
				h := dial(t, engine+"://"+running(t, e, os.TempDir()), nil)
				s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
				require.NoError(t, err)
				return s
			})
		})
	}
}
