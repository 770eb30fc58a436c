package shell

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// A session that hands over again and again keeps nothing of what has ended.
func TestWhatWasHandedOverAndHasEndedIsForgotten(t *testing.T) {
	testenv.NeedProc(t)
	ctx := testenv.Context(t)
	s, err := Start(ctx, nil)
	require.NoError(t, err)
	defer s.Close()
	for range 4 {
		_, err := s.Do(ctx, command.Request{Script: "sleep 0.1", Timeout: 10 * time.Millisecond, HandOver: true})
		e, ok := errors.AsType[*HandedOverError](err)
		require.True(t, ok, "%v", err)
		require.NoError(t, e.Command.Close())
	}
	assert.Len(t, s.handed, 1, "the last one is looked at with the next")
}
