package sessions

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestNoClockOfAnotherMachineIsNeeded(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, off := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		r := row{State: "idle", Used: now.Add(off), since: 3 * time.Second}
		assert.Equal(t, "used 3s ago", r.doing(now))
	}
	assert.Equal(t, "used 4s ago", row{State: "idle", Used: now.Add(-4 * time.Second)}.doing(now), "an older limpet does not say it")
}
