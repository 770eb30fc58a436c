package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/shell"
)

func TestAGateWaitsForThoseWhoHavePassed(t *testing.T) {
	ctx := testenv.Context(t)
	var g gate
	leave, err := g.enter(ctx, 0)
	require.NoError(t, err)
	_, err = g.close(ctx, time.Millisecond)
	require.ErrorIs(t, err, shell.ErrBusy)
	again, err := g.enter(ctx, time.Millisecond)
	require.NoError(t, err, "it is open again")
	again()
	again() // Once is enough.
	shut := make(chan func(bool), 1)
	go func() {
		open, err := g.close(ctx, 0)
		assert.NoError(t, err)
		shut <- open
	}()
	testenv.Await(t, "the gate to be shut", func() bool {
		leave, err := g.enter(ctx, time.Millisecond)
		if err == nil {
			leave()
		}
		return err != nil
	})
	leave()
	open := <-shut
	_, err = g.enter(ctx, time.Millisecond)
	require.ErrorIs(t, err, shell.ErrBusy)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = g.enter(gone, 0)
	require.ErrorIs(t, err, context.Canceled)
	_, err = g.close(ctx, time.Millisecond)
	require.ErrorIs(t, err, shell.ErrBusy, "another one has shut it")

	entered := make(chan error, 1)
	go func() {
		_, err := g.enter(ctx, 0)
		entered <- err
	}()
	open(true)
	require.ErrorIs(t, <-entered, ErrMoved)
	_, err = g.close(ctx, 0)
	require.ErrorIs(t, err, ErrMoved)
	assert.True(t, g.hasMoved())
}

func TestNobodyIsInAGateThatIsShut(t *testing.T) {
	ctx := testenv.Context(t)
	var (
		g      gate
		inside atomic.Int32
		all    sync.WaitGroup
	)
	for range 8 {
		all.Go(func() {
			for range 200 {
				leave, err := g.enter(ctx, 0)
				if !assert.NoError(t, err) {
					return
				}
				inside.Add(1)
				inside.Add(-1)
				leave()
			}
		})
	}
	for range 4 {
		all.Go(func() {
			for range 50 {
				open, err := g.close(ctx, 0)
				if !assert.NoError(t, err) {
					return
				}
				assert.Zero(t, inside.Load())
				open(false)
			}
		})
	}
	all.Wait()
}
