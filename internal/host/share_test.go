package host_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
)

// sharing has connections of this test's own be shared, which end with it.
func sharing(t *testing.T) {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", testenv.TempDir(t))
	t.Cleanup(func() {
		list, err := host.ListShared(context.Background())
		require.NoError(t, err)
		for _, one := range list {
			require.NoError(t, one.End(context.Background()))
		}
		// The command that has reached the machine ends a moment later.
		testenv.Await(t, "the processes to end", func() bool { return len(processes(t, "limpet-host")) == 0 })
	})
}

// processes are the pids of those below this one that are called so.
func processes(t *testing.T, name string) (pids []int) {
	t.Helper()
	for _, st := range testenv.Children() {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(st.PID) + "/cmdline")
		if err == nil && strings.HasPrefix(string(b), name+"\x00") {
			pids = append(pids, st.PID)
		}
	}
	return pids
}

func TestAConnectionIsSharedByAll(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	m := machineOf(t, "sh")
	sharing(t)
	ctx := testenv.Context(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	ends := map[int]bool{}
	for range 5 { // All at once: one makes it.
		all.Go(func() {
			h := dialNow(t, m.target, &host.Options{Share: true})
			mu.Lock()
			ends[connectOf(h)] = true
			mu.Unlock()
			assert.NoError(t, h.Disconnect())
		})
	}
	all.Wait()
	assert.Len(t, ends, 1, "there is one limpet at the other end")
	list, err := host.ListShared(ctx)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, m.target, list[0].Target)
	assert.Zero(t, list[0].Active)

	h := dial(t, m.target, &host.Options{Share: true, Reconnect: -1})
	assert.True(t, ends[connectOf(h)], "it stays")
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = s.Run(ctx, "x=1")
	require.NoError(t, err)
	_, err = h.Temporary(ctx, "t", &keeper.Spec{})
	require.NoError(t, err)
	require.NoError(t, h.Disconnect())
	h = dial(t, m.target, &host.Options{Share: true, Reconnect: -1})
	kept, err := h.List(ctx, true)
	require.NoError(t, err)
	require.Len(t, kept, 1, "the other one was temporary")
	require.NoError(t, list[0].End(ctx))
	_, err = h.List(ctx, true)
	require.ErrorIs(t, err, host.ErrLost)
	h = dial(t, m.target, &host.Options{Share: true})
	assert.False(t, ends[connectOf(h)])

	// The same words may mean another machine elsewhere.
	t.Chdir(testenv.TempDir(t))
	other := dial(t, m.target, &host.Options{Share: true})
	assert.NotEqual(t, connectOf(h), connectOf(other))
	t.Setenv("DOCKER_HOST", "unix:///elsewhere")
	assert.NotEqual(t, connectOf(other), connectOf(dial(t, m.target, &host.Options{Share: true})))
}

// dialNow is dial for goroutines.
func dialNow(t *testing.T, target string, opts *host.Options) *host.Host {
	to, err := host.ParseTarget(target)
	assert.NoError(t, err)
	h, err := host.Dial(testenv.Context(t), to, opts)
	assert.NoError(t, err)
	return h
}

func TestAConnectionThatNobodyUsesEnds(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	m := machineOf(t, "sh")
	sharing(t)
	h := dial(t, m.target, &host.Options{Share: true, Idle: 300 * time.Millisecond, Reconnect: -1})
	far := connectOf(h)
	s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = s.Run(testenv.Context(t), "sleep 1") // It is used.
	require.NoError(t, err)
	between := processes(t, "limpet-host") // By its number: one that ends has no name before its files are closed.
	require.Len(t, between, 1)
	testenv.Await(t, "the connection to end", func() bool { return !testenv.Alive(far) && !testenv.Alive(between[0]) })
	// A request that net/http puts into a connection before it sees its end may have been sent, for all that is known.
	testenv.Await(t, "net/http to see it", func() bool {
		all := make([]byte, 1<<20)
		return !bytes.Contains(all[:runtime.Stack(all, true)], []byte("net/http.(*persistConn).readLoop"))
	})
	_, err = s.Run(testenv.Context(t), "true")
	require.ErrorIs(t, err, host.ErrLost)
	require.NotErrorIs(t, err, wire.ErrMayHaveRun, "nobody got it")
}

// A session that was there when a program opened it as a temporary one does not end with that program: the connection is not kept for that.
func TestASessionThatWasThereIsNotTemporary(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	m := machineOf(t, "sh")
	sharing(t)
	ctx := testenv.Context(t)
	h := dial(t, m.target, &host.Options{Share: true, Idle: 300 * time.Millisecond})
	_, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	k, err := h.Temporary(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	assert.False(t, k.Made)
	_, err = k.Run(ctx, "true")
	require.NoError(t, err)
	testenv.Await(t, "the connection to end", func() bool { return len(processes(t, "limpet-host")) == 0 })
}

// Whoever is killed between, those who use the connection are told that it is lost, and the next has another one.
func TestASharedConnectionIsLost(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	m := machineOf(t, "sh")
	sharing(t)
	ctx := testenv.Context(t)
	for name, victim := range map[string]func(h *host.Host) int{
		"limpet there":    connectOf,
		"what is between": func(*host.Host) int { return processes(t, "limpet-host")[0] },
	} {
		h := dial(t, m.target, &host.Options{Share: true, Reconnect: -1})
		s, err := h.Session(ctx, "s", &keeper.Spec{})
		require.NoError(t, err, name)
		file := filepath.Join(testenv.TempDir(t), "begun")
		called := make(chan error, 1)
		go func() {
			_, err := s.Run(ctx, "x="+strings.ReplaceAll(name, " ", "")+"; echo >"+file+"; sleep 1000")
			called <- err
		}()
		testenv.AwaitFile(t, file)
		require.NoError(t, syscall.Kill(victim(h), syscall.SIGKILL), name)
		err = <-called
		require.ErrorIs(t, err, host.ErrLost, name)
		require.ErrorIs(t, err, wire.ErrMayHaveRun, name)

		h = dial(t, m.target, &host.Options{Share: true})
		s, err = h.Session(ctx, "s", nil)
		require.NoError(t, err, name)
		_, err = s.Interrupt(ctx)
		require.NoError(t, err, name)
		res, err := s.Run(ctx, "echo $x")
		require.NoError(t, err, name)
		assert.Equal(t, strings.ReplaceAll(name, " ", "")+"\n", res.Stdout.String())
		require.NoError(t, h.Disconnect(), name)
	}
}

// A command that closes its output before it ends is said to have, and not by the name that programmers have for that.
func TestWhatClosesTheConnectionIsNamed(t *testing.T) {
	testenv.Slow(t)
	sharing(t)
	m := machineOf(t, "sh")
	fifo := filepath.Join(m.home, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	gate, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	defer gate.Close() // Nothing of it is kept.
	target := "exec:sh -c '" + strings.TrimPrefix(m.target, "exec:") + "; exec >&-; read -r line <" + fifo + "'"
	for _, share := range []bool{false, true} {
		h := dial(t, target, &host.Options{Share: share, Reconnect: -1})
		require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
		_, err := h.List(testenv.Context(t), true)
		require.ErrorIs(t, err, host.ErrLost)
		assert.ErrorContains(t, err, "the connection is lost: sh has closed it")
		_, err = gate.WriteString("\n") // It ends now.
		require.NoError(t, err)
	}
}

func TestSessionsOverASharedConnectionKeepThePromises(t *testing.T) {
	testenv.OnlyAll(t)
	sharing(t)
	sessiontest.Run(t, func(t *testing.T) session.Handle {
		h := dial(t, machineOf(t, "sh").target, &host.Options{Share: true, Idle: time.Minute})
		s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{Dir: testenv.TempDir(t)})
		require.NoError(t, err)
		return s
	})
}

// Where no directory is to be had for it, a connection is not shared, and works.
func TestAConnectionThatCannotBeSharedIsOnesOwn(t *testing.T) {
	m := machineOf(t, "sh")
	t.Setenv("XDG_STATE_HOME", "/dev/null")
	for range 2 {
		h := dial(t, m.target, &host.Options{Share: true})
		_, err := h.List(testenv.Context(t), false)
		require.NoError(t, err)
	}
}

// What the command says all the time does not hold up that its connection is left to another process, and is told when it is lost.
func TestACommandThatTalksIsShared(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	sharing(t)
	m := machineOf(t, "sh")
	talks := "exec:sh -c '(while :; do echo talk >&2; done) & talker=$!; trap \"kill $talker\" EXIT; " + strings.TrimPrefix(m.target, "exec:") + "'"
	for range 5 {
		h := dial(t, talks, &host.Options{Share: true})
		_, err := h.List(testenv.Context(t), false)
		require.NoError(t, err)
		list, err := host.ListShared(testenv.Context(t))
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.NoError(t, list[0].End(testenv.Context(t)))
		testenv.Await(t, "it to end", func() bool { return len(processes(t, "limpet-host")) == 0 })
	}
}
