package host_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

// Whoever asks for the end of a session and does not wait for it takes nothing from the others on the same connection.
func TestACloseThatIsGivenUpIsNobodyElses(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	sharing(t)
	m := machineOf(t, "sh")
	ctx := testenv.Context(t)
	opts := &host.Options{Share: true, Reconnect: -1}
	one, other := dial(t, m.target, opts), dial(t, m.target, opts)
	s, err := one.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	began, closing := filepath.Join(m.home, "began"), filepath.Join(m.home, "closing")
	ended := make(chan error, 1)
	go func() {
		_, err := s.Do(ctx, command.Request{Script: "(trap 'echo >>" + closing + "' INT TERM HUP; echo >" + began + "; while :; do sleep 0.05; done)"})
		ended <- err
	}()
	testenv.AwaitFile(t, began)
	theirs, err := other.Session(ctx, "s", nil)
	require.NoError(t, err)
	within, giveUp := context.WithCancel(ctx)
	closed := make(chan error, 1)
	go func() { closed <- other.Close(within, theirs) }()
	testenv.AwaitFile(t, closing)
	giveUp()
	require.ErrorIs(t, <-closed, context.Canceled)

	err = <-ended
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "the connection is closed")
	require.NoError(t, other.Close(ctx, theirs), "it ends, or has ended")
	_, err = one.Session(ctx, "s", nil)
	require.ErrorIs(t, err, session.ErrNotFound)
	next, err := one.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = next.Run(ctx, "true")
	require.NoError(t, err)
}
