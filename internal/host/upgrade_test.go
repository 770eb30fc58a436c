package host_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/shell"
)

// Whoever has the session goes on with it, by whichever connection.
func TestASessionOverThereIsUpgraded(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h, other := dial(t, m.target, nil), dial(t, m.target, nil)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	user, err := other.Session(ctx, "s", nil)
	require.NoError(t, err)
	says := func(s *keeper.Kept, script string) string {
		res, err := s.Run(ctx, script)
		require.NoError(t, err)
		return strings.TrimSpace(res.Stdout.String())
	}
	bash := says(user, "cd /usr; x=1; echo $$")
	lost, err := h.Upgrade(ctx, s, keeper.Upgrade{Force: true})
	require.NoError(t, err)
	assert.Empty(t, lost)
	for _, k := range []*keeper.Kept{s, user} {
		assert.Equal(t, "/usr 1", says(k, "echo $PWD $x"))
		assert.NotEqual(t, bash, says(k, "echo $$"))
	}
	list, err := h.List(ctx, true)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.NotEqual(t, s.Record.PID, list[0].Record.PID)
	assert.Equal(t, h.UpgradesTo(), list[0].Record.Version)

	says(user, "sleep 1000 & disown")
	_, err = h.Upgrade(ctx, s, keeper.Upgrade{})
	require.ErrorIs(t, err, wire.ErrWouldLose)
	assert.ErrorContains(t, err, "--force does it all the same")
	called := sleeping(t, user)
	_, err = h.Upgrade(ctx, s, keeper.Upgrade{NoWait: true, Force: true})
	require.ErrorIs(t, err, shell.ErrBusy)
	_, err = user.Interrupt(ctx)
	require.NoError(t, err)
	<-called // What it says is another test's.
	lost, err = h.Upgrade(ctx, s, keeper.Upgrade{Force: true})
	require.NoError(t, err)
	assert.Contains(t, strings.Join(lost, " "), "sleep 1000")

	require.NoError(t, h.Close(ctx, s))
	_, err = h.Upgrade(ctx, s, keeper.Upgrade{Force: true})
	require.ErrorIs(t, err, wire.ErrGone)
}

// A command that runs is waited for. If the connection is lost meanwhile nothing is said of what came of it, and the session is there.
func TestAnUpgradeThatIsCutLeavesTheSession(t *testing.T) {
	testenv.Slow(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	h, other := dial(t, m.target, &host.Options{Reconnect: -1}), dial(t, m.target, nil)
	s, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	user, err := other.Session(ctx, "s", nil)
	require.NoError(t, err)
	_, err = user.Run(ctx, "x=1")
	require.NoError(t, err)
	called := sleeping(t, user)
	upgraded := make(chan error, 1)
	go func() {
		_, err := h.Upgrade(ctx, s, keeper.Upgrade{Force: true})
		upgraded <- err
	}()
	_, err = s.Do(ctx, command.Request{Script: "true", TurnTimeout: 100 * time.Millisecond}) // Time for it to get there.
	require.ErrorIs(t, err, shell.ErrBusy)
	require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
	require.ErrorIs(t, <-upgraded, host.ErrLost)
	_, err = user.Interrupt(ctx)
	require.NoError(t, err)
	<-called
	res, err := user.Run(ctx, "echo $x")
	require.NoError(t, err)
	assert.Equal(t, "1\n", res.Stdout.String())
	list, err := other.List(ctx, true)
	require.NoError(t, err)
	assert.Len(t, list, 1)
}
