package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhenASessionWasUsedIsAsTheClockHasItNow(t *testing.T) {
	r, err := New(nil)
	require.NoError(t, err)
	defer r.Close()
	s, err := r.Open(t.Context(), "a", nil)
	require.NoError(t, err)
	for _, by := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		s.mu.Lock()
		s.lastUsed = time.Now().Round(0).Add(by) // As it is after the clock was set.
		s.mu.Unlock()
		info := s.info()
		assert.WithinDuration(t, time.Now(), info.LastUsed, time.Minute)
		assert.Positive(t, info.SinceUsed)
		assert.Less(t, info.SinceUsed, time.Minute)
	}
}
