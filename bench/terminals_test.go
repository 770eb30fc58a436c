package main

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
)

func TestALoudTerminalIsFollowedToItsEnd(t *testing.T) {
	b := quickBench(t)
	const size = 1 * megabyte
	require.NoError(t, b.withTerminals(0, func(r *terminal.Registry) error {
		w := &watchers{count: 3, look: lookEvery}
		_, err := b.loudTerminal(r, size, w)(b.ctx)
		require.NoError(t, err)
		assert.GreaterOrEqual(t, w.seen.Load()+w.missed.Load(), int64(3*size))
		infos, err := r.List()
		require.NoError(t, err)
		assert.Empty(t, infos, "it was not forgotten")
		return nil
	}))
	_, err := b.loudPlain(size)(b.ctx)
	require.NoError(t, err)
}

func TestMissingIsAShare(t *testing.T) {
	var w watchers
	assert.Equal(t, "0.00%", w.missing(), "of nothing")
	w.seen.Add(75)
	w.missed.Add(25)
	assert.Equal(t, "25.0%", w.missing())
}

func TestAFollowerOfATerminalEndsWithIt(t *testing.T) {
	b := quickBench(t)
	require.NoError(t, b.withTerminals(0, func(r *terminal.Registry) error {
		term, err := r.Start(b.ctx, terminal.Spec{Argv: []string{"cat"}})
		require.NoError(t, err)
		var all sync.WaitGroup
		require.NoError(t, (&watchers{count: 2, look: lookEvery}).follow(context.Background(), term, &all))
		require.NoError(t, term.Close())
		all.Wait()
		return nil
	}))
}

func TestNothingIsLeftOfTheTerminalsOfABench(t *testing.T) {
	b := quickBench(t)
	var dir string
	failed := errors.New("a workload fails")
	err := b.withTerminals(0, func(r *terminal.Registry) error {
		dir = r.Dir()
		term, err := r.Start(b.ctx, terminal.Spec{Argv: []string{"sleep", "1000"}})
		require.NoError(t, err)
		require.True(t, testenv.Alive(term.Info().PID))
		t.Cleanup(func() { assert.False(t, testenv.Alive(term.Info().PID)) })
		return failed
	})
	require.ErrorIs(t, err, failed)
	assert.NoDirExists(t, dir)
}
