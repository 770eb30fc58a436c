package uptime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestATimeIsAsTheClockHasItNow(t *testing.T) {
	const day = 24 * time.Hour
	clock, now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC), time.Hour
	minuteAgo := clock.Add(-time.Minute)
	for name, c := range map[string]struct {
		recorded time.Time
		up       time.Duration
		want     time.Time
	}{
		"nobody has set it":                 {minuteAgo, now - time.Minute, minuteAgo},
		"it is a little apart":              {minuteAgo.Add(time.Millisecond), now - time.Minute, minuteAgo.Add(time.Millisecond)},
		"it was set a day forward":          {minuteAgo.Add(-day), now - time.Minute, minuteAgo},
		"it was set a day back":             {minuteAgo.Add(day), now - time.Minute, minuteAgo},
		"there is none":                     {minuteAgo.Add(-day), 0, minuteAgo.Add(-day)},
		"it is that of another boot":        {minuteAgo.Add(-day), now + time.Minute, minuteAgo.Add(-day)},
		"nobody knows when it was recorded": {time.Time{}, now - time.Minute, time.Time{}},
	} {
		assert.Equal(t, c.want, at(c.recorded, c.up, clock, now), name)
	}
}

func TestUptimeGoesOn(t *testing.T) {
	before := Now()
	if before == 0 {
		return // It cannot be told on this system.
	}
	assert.Eventually(t, func() bool { return Now() > before }, time.Minute, time.Millisecond)
}
