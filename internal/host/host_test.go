package host_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
)

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", race) // It cannot fail.
	code := testenv.Main(m)
	for _, dir := range []string{brought, agents} {
		if dir != "" {
			_ = os.RemoveAll(dir) // It is one for temporary files.
		}
	}
	os.Exit(code)
}

// brought is where most tests bring this program to, or what stands in for it (testenv.StandInVar), once; cache makes it.
var (
	brought string
	cache   = sync.OnceValue(func() string {
		dir, err := os.MkdirTemp("", "limpet-cache")
		if err != nil {
			panic(err)
		}
		brought = dir
		return dir
	})
)

// race has a program that was built for the race detector not sleep for a second when it exits.
const race = "atexit_sleep_ms=0"

// machine is a place that is reached by a sh in an environment of its own.
type machine struct {
	home   string
	target string
	mark   string // an entry of the environment of what connects to it, and of what runs there; may be empty
}

// machineOf returns one whose sh is a command. Its sessions end with the test.
func machineOf(t *testing.T, sh ...string) machine {
	t.Helper()
	m := machine{home: testenv.TempDir(t)}
	argv := append([]string{"env", "-i", "HOME=" + m.home, "XDG_CACHE_HOME=" + cache(), "GORACE=" + race}, sh...)
	m.target = "exec:" + strings.Join(argv, " ")
	endSessions(t, filepath.Join(m.home, ".local/state/limpet/keep"))
	return m
}

// endSessions ends those of a directory with the test.
func endSessions(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() {
		r, err := keeper.Open(dir)
		require.NoError(t, err)
		list, err := r.List(testenv.Context(t), false)
		require.NoError(t, err)
		for _, one := range list {
			if err := r.Kill(testenv.Context(t), one.Record.Name); !errors.Is(err, session.ErrNotFound) { // It ends just now.
				require.NoError(t, err)
			}
		}
	})
}

func dial(t *testing.T, target string, opts *host.Options) *host.Host {
	t.Helper()
	to, err := host.ParseTarget(target)
	require.NoError(t, err)
	h, err := host.Dial(testenv.Context(t), to, opts)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Disconnect()) })
	return h
}

func TestASessionIsKeptOverThere(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "XDG_CACHE_HOME="+testenv.TempDir(t), "dash")
	brought := 0
	h := dial(t, m.target, &host.Options{Progress: func(sent, of int64) { brought++ }})
	assert.Positive(t, brought)
	s, err := h.Session(testenv.Context(t), "b", &keeper.Spec{})
	require.NoError(t, err)
	assert.True(t, s.Made)
	_, err = s.Run(testenv.Context(t), "cd /tmp; x=1")
	require.NoError(t, err)
	res, err := s.Run(testenv.Context(t), "umask")
	require.NoError(t, err)
	umask, err := exec.Command("bash", "-c", "umask").Output()
	require.NoError(t, err)
	assert.Equal(t, string(umask), res.Stdout.String(), "that of who is there, and not the one for what is brought")
	require.NoError(t, h.Disconnect())

	brought = 0
	h = dial(t, m.target, &host.Options{Progress: func(sent, of int64) { brought++ }})
	assert.Zero(t, brought, "it is there")
	s, err = h.Session(testenv.Context(t), "b", nil)
	require.NoError(t, err)
	over, end := context.WithCancel(t.Context())
	end()
	info, err := s.InfoThen(over)
	require.NoError(t, err, "it came with the answer: nothing more is asked")
	assert.Equal(t, "/tmp", info.Dir)
	res, err = s.Run(testenv.Context(t), "echo $PWD $x $HOME")
	require.NoError(t, err)
	assert.Equal(t, "/tmp 1 "+m.home+"\n", res.Stdout.String())
}

// The machine is one of its own: another root, other processes, and a busybox for a sh. It is brought cmd/limpet-connect, as users' machines
// are: the race detector, which makes this program start five times as slowly, watches this side alone.
func TestSessionsOverThereKeepThePromises(t *testing.T) {
	testenv.Slow(t)
	needSandbox(t)
	sessiontest.Run(t, func(t *testing.T) session.Handle {
		h := dial(t, "exec:"+strings.Join(append(sandboxed("--bind", os.TempDir(), os.TempDir(), "--bind", cache(), "/cache", "--setenv", "XDG_CACHE_HOME", "/cache"), "busybox", "sh"), " "), &host.Options{Executable: small(t, runtime.GOARCH)})
		s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
		require.NoError(t, err)
		return s
	})
}

// needSandbox skips a test where there is no bwrap, or none that works.
func needSandbox(t *testing.T) {
	t.Helper()
	if out, err := exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "true").CombinedOutput(); err != nil {
		t.Skipf("no sandbox is to be had here: %s: %s", err, out)
	}
	if _, err := exec.LookPath("busybox"); err != nil {
		t.Skip("no busybox")
	}
}

// sandboxed is the argv of a machine of its own, but for the command.
func sandboxed(more ...string) []string {
	argv := []string{
		"bwrap", "--unshare-all", "--die-with-parent", "--clearenv", "--setenv", "HOME", "/home/u", "--setenv", "GORACE", race,
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/sbin", "/sbin",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/var/tmp", "--dir", "/home/u", "--tmpfs", "/dev/shm",
	}
	return append(argv, more...)
}

func TestSessionsOfOneNameAreToldApart(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	one, other := dial(t, m.target, nil), dial(t, m.target, nil)
	first, err := one.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	same, err := other.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	assert.False(t, same.Made)
	_, err = first.Run(ctx, "x=1")
	require.NoError(t, err)
	res, err := same.Run(ctx, "echo $x")
	require.NoError(t, err)
	assert.Equal(t, "1\n", res.Stdout.String())
	_, err = one.Session(ctx, "a b", &keeper.Spec{})
	require.ErrorIs(t, err, session.ErrName)
	_, err = one.Session(ctx, "other", nil)
	require.ErrorIs(t, err, session.ErrNotFound)

	require.NoError(t, other.Close(ctx, same))
	_, err = first.Run(ctx, "echo never")
	require.ErrorIs(t, err, wire.ErrGone)
	next, err := other.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	require.NotNil(t, next.Was)
	assert.Equal(t, "was closed", next.Was.Why)
	_, err = first.Run(ctx, "echo never")
	require.ErrorIs(t, err, wire.ErrGone, "it is another one")

	list, err := one.List(ctx, true)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, "s", list[0].Info.Name)
	require.NoError(t, one.Kill(ctx, "s"))
	list, err = one.List(ctx, false)
	require.NoError(t, err)
	assert.Empty(t, list)
}

func TestNothingOfThisEnvironmentGoesOver(t *testing.T) {
	t.Setenv("SECRET_OF_HERE", "x")
	t.Setenv("SSH_AUTH_SOCK", "/here")
	m := machineOf(t, "SSH_AUTH_SOCK=/there", "sh")
	h := dial(t, m.target, nil)
	s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	res, err := s.Do(testenv.Context(t), command.Request{Script: "env; readlink $SSH_AUTH_SOCK", UpdateEnv: h.CallerEnv()})
	require.NoError(t, err)
	assert.NotContains(t, res.Stdout.String(), "SECRET_OF_HERE")
	assert.Contains(t, res.Stdout.String(), "\n/there\n")
}

func TestManyCommandsInARow(t *testing.T) {
	testenv.Slow(t)
	sharing(t)
	m := machineOf(t, "sh")
	for _, share := range []bool{false, true} {
		h := dial(t, m.target, &host.Options{Share: share})
		s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
		require.NoError(t, err)
		for i := range testenv.Repeats(20, 50, 20000) {
			res, err := s.Run(testenv.Context(t), "true")
			require.NoError(t, err, "%d, shared: %v", i, share)
			require.Zero(t, res.ExitCode)
		}
		require.NoError(t, h.Disconnect())
	}
}
