package session

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
)

// An event that is larger than all that is remembered takes the place of those before it, and whoever asks has it once, and then waits.
func TestTheLastEventIsRemembered(t *testing.T) {
	var e events
	e.mu.Lock()
	e.put(Event{Kind: OutputEvent, Text: []byte("early")})
	e.put(Event{Kind: OutputEvent, Text: make([]byte, 2*mostEventBytes)})
	e.mu.Unlock()
	for _, seq := range []int64{0, 1} {
		list, err := e.after(t.Context(), seq)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.EqualValues(t, 2, list[0].Seq)
	}
	nothing := errors.New("nothing has happened")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(nothing)
	_, err := e.after(ctx, 2)
	require.ErrorIs(t, err, nothing)
	e.mu.Lock()
	e.put(Event{Kind: OutputEvent, Text: []byte("late")})
	e.mu.Unlock()
	list, err := e.after(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.EqualValues(t, 3, list[0].Seq)
	assert.Equal(t, len("late"), e.bytes)
}

func TestALongErrorIsShownInPart(t *testing.T) {
	var e events
	c := &watchedCommand{events: &e}
	c.begins("/")
	c.end(command.Result{}, errors.New(strings.Repeat("\u20ac", mostEventBytes)))
	list, err := e.after(t.Context(), 0)
	require.NoError(t, err)
	require.Len(t, list, 2)
	assert.Equal(t, strings.Repeat("\u20ac", mostEventError/3)+"…", list[1].Error)
}
