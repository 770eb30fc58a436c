package sessiontest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

func checkpoints(t *testing.T, s session.Handle) {
	ctx := testenv.Context(t)
	run(t, s, "cd /tmp; x=1")
	require.NoError(t, s.Checkpoint(ctx, "one"))
	run(t, s, "cd /; x=2; sleep 1000 &")
	require.NoError(t, s.Checkpoint(ctx, "two"))
	assert.Equal(t, []string{"one", "two"}, infoOf(t, s).Checkpoints)
	restart, err := s.Rollback(ctx, "one")
	require.NoError(t, err)
	require.NotNil(t, restart)
	assert.NotEmpty(t, restart.Lost, "the job of the old bash")
	assert.Equal(t, "/tmp 1", says(t, s, "echo $PWD $x"))

	_, err = s.Rollback(ctx, "three")
	require.ErrorIs(t, err, session.ErrNotFound)
	var said *session.Error
	require.ErrorAs(t, err, &said)
	assert.Equal(t, "there are one, two", said.Remedy)
	assert.EqualError(t, err, `session: roll back "s": checkpoint "three": there is none of that name; there are one, two`)
	require.ErrorIs(t, s.Checkpoint(ctx, "no/name"), session.ErrName)
}

func reset(t *testing.T, s session.Handle) {
	before := says(t, s, "pwd")
	run(t, s, "cd /tmp; x=1; f() { :; }")
	require.NoError(t, s.Reset(testenv.Context(t)))
	assert.Equal(t, before+" none none", says(t, s, "echo $PWD ${x-none} $(type -t f || echo none)"))
}

func fork(t *testing.T, s session.Handle) {
	ctx := testenv.Context(t)
	run(t, s, "cd /tmp; x=1; f() { echo f $x; }")
	other, err := s.Fork(ctx, "other")
	require.NoError(t, err)
	assert.Equal(t, "other", other.Name())
	assert.Equal(t, "/tmp", infoOf(t, other).Dir)
	run(t, s, "cd /; x=2")
	assert.Equal(t, "/tmp f 1", says(t, other, "echo $PWD $(f)"))
	run(t, other, "x=3")
	assert.Equal(t, "/ f 2", says(t, s, "echo $PWD $(f)"))
	_, err = s.Fork(ctx, "other")
	require.ErrorIs(t, err, session.ErrExists)
	_, err = s.Fork(ctx, "no/name")
	require.ErrorIs(t, err, session.ErrName)
	require.NoError(t, other.Close())
}

func info(t *testing.T, s session.Handle) {
	now := infoOf(t, s)
	assert.Equal(t, session.Unused, now.State)
	assert.NotEmpty(t, now.Dir)
	assert.False(t, now.Created.IsZero())
	run(t, s, "cd /tmp")
	now = infoOf(t, s)
	assert.Equal(t, session.Idle, now.State)
	assert.Equal(t, "/tmp", now.Dir)
	assert.Equal(t, 1, now.Commands)
	assert.Empty(t, now.Running)
	assert.Empty(t, now.Holder)
	r := begun(testenv.Context(t), t, s, command.Request{Script: "sleep 1000", Caller: "a test, " + strings.Repeat("é", 200) + "\nand more"})
	now = infoOf(t, s)
	assert.Equal(t, session.Busy, now.State)
	assert.Contains(t, now.Running, "sleep 1000")
	assert.Equal(t, "a test, "+strings.Repeat("é", 192)+"…", now.Holder)
	_, err := s.Interrupt(testenv.Context(t))
	require.NoError(t, err)
	_, err = r.ended(t)
	require.Error(t, err)
}

func closeEnds(t *testing.T, s session.Handle) {
	r := begun(testenv.Context(t), t, s, command.Request{Script: "sleep 1000"})
	require.NoError(t, s.Close())
	_, err := r.ended(t)
	require.ErrorIs(t, err, session.ErrClosed)
	assert.Regexp(t, `^command stopped: session "s" was closed: open it again( \(\d+ process(es)? .*\))?$`, err.Error())
	require.NoError(t, s.Close())
	_, err = s.Run(testenv.Context(t), "echo never")
	require.ErrorIs(t, err, session.ErrClosed)
	var said *session.Error
	require.ErrorAs(t, err, &said)
	assert.Equal(t, "s", said.Session)
	require.ErrorIs(t, s.Checkpoint(testenv.Context(t), "one"), session.ErrClosed)
	_, err = s.Interrupt(testenv.Context(t))
	require.ErrorIs(t, err, session.ErrClosed)
}
