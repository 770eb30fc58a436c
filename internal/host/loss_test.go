package host_test

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
)

// connectOf is the pid of the limpet at the other end, which is on this machine.
func connectOf(h *host.Host) int { return h.Hello().PID }

// sleeping runs a command that does not end, and returns when it has begun. The channel gets the error of the call.
func sleeping(t *testing.T, s session.Handle) <-chan error {
	t.Helper()
	file := testenv.TempDir(t) + "/begun"
	called := make(chan error, 1)
	ctx := testenv.Context(t)
	go func() {
		_, err := s.Run(ctx, "echo >"+file+"; sleep 1000")
		called <- err
	}()
	testenv.AwaitFile(t, file)
	return called
}

// A connection that is lost ends the call and not the command: asked for again by its id it was run once.
func TestALostConnectionLosesNothing(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h := dial(t, m.target, &host.Options{Reconnect: -1})
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	dir := testenv.TempDir(t)
	req := command.Request{ID: "one", Script: "echo >>" + dir + "/begun; echo out; until [[ -e " + dir + "/go ]]; do sleep 0.01; done; echo end"}
	called := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, req)
		called <- err
	}()
	testenv.AwaitFile(t, dir+"/begun")
	require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
	err = <-called
	require.ErrorIs(t, err, host.ErrLost)
	require.ErrorIs(t, err, wire.ErrMayHaveRun)
	require.ErrorContains(t, err, "signal 9")
	_, err = s.Run(ctx, "true")
	require.ErrorIs(t, err, host.ErrLost)
	_, err = h.Session(ctx, "s", nil)
	require.ErrorIs(t, err, host.ErrLost)

	h = dial(t, m.target, nil)
	s, err = h.Session(ctx, "s", nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dir+"/go", nil, 0o600))
	res, err := s.Do(ctx, req)
	require.NoError(t, err)
	assert.Equal(t, "out\nend\n", res.Stdout.String())
	begun, err := os.ReadFile(dir + "/begun")
	require.NoError(t, err)
	assert.Equal(t, "\n", string(begun), "it ran once")
}

func TestGoodbyeEndsWhatIsTemporaryAndALossDoesNot(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	left := func() (names []string) {
		h := dial(t, m.target, nil)
		list, err := h.List(ctx, true)
		require.NoError(t, err)
		for _, one := range list {
			names = append(names, one.Record.Name)
		}
		require.NoError(t, h.Disconnect())
		return names
	}
	open := func(h *host.Host, name string) {
		_, err := h.Temporary(ctx, name, &keeper.Spec{})
		require.NoError(t, err)
	}
	h := dial(t, m.target, nil)
	_, err := h.Session(ctx, "kept", &keeper.Spec{})
	require.NoError(t, err)
	open(h, "kept") // It is there, and not temporary.
	open(h, "bye")
	require.NoError(t, h.Disconnect())
	require.NoError(t, h.Disconnect())
	assert.Equal(t, []string{"kept"}, left())

	h = dial(t, m.target, &host.Options{Reconnect: -1})
	open(h, "lost")
	require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
	if err := h.Disconnect(); err != nil { // It may be known that it is lost.
		require.ErrorIs(t, err, host.ErrLost)
	}
	assert.Equal(t, []string{"kept", "lost"}, left())
}

// Whoever stands still over there, or between, is given up, in a bounded time.
func TestASilentMachineIsLost(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h := dial(t, m.target, &host.Options{Times: short, Reconnect: -1})
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	pid := connectOf(h)
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	testenv.AwaitStopped(t, pid) // One of its threads might answer before.
	_, err = s.Run(ctx, "echo hi")
	require.ErrorIs(t, err, host.ErrLost)
	require.ErrorIs(t, err, pipe.ErrSilent)
	_ = syscall.Kill(pid, syscall.SIGCONT) // It may have been ended by now.
}

func TestAKeeperThatIsKilledIsGone(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h := dial(t, m.target, nil)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	called := sleeping(t, s)
	require.NoError(t, syscall.Kill(s.Record.PID, syscall.SIGKILL))
	err = <-called
	require.ErrorIs(t, err, wire.ErrGone)
	require.ErrorIs(t, err, wire.ErrMayHaveRun)
	next, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	require.NotNil(t, next.Was)
	assert.Contains(t, next.Was.String(), "ended when its keeper was killed")
}

func TestTheCallersContextEndsADial(t *testing.T) {
	testenv.Slow(t)
	ctx, cancel := context.WithTimeout(testenv.Context(t), 200*time.Millisecond)
	defer cancel()
	to, err := host.ParseTarget("exec:sleep 1000")
	require.NoError(t, err)
	_, err = host.Dial(ctx, to, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestDisconnectEndsWhatIsUnderWay(t *testing.T) {
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h := dial(t, m.target, nil)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	called := sleeping(t, s)
	s.Disconnect()
	require.ErrorIs(t, <-called, session.ErrClosed)
	require.NoError(t, h.Disconnect())
	_, err = h.List(ctx, false)
	require.ErrorIs(t, err, session.ErrClosed)
}
