package jobs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// feed gives a window a match, as the registry does.
func feed(w *window, now time.Time) (told bool, dropped int) {
	dropped, _ = w.close(now)
	if told = w.match(now); told {
		w.told(now)
	}
	return told, dropped
}

func TestAWindowHasOneEvent(t *testing.T) {
	w := window{limits: WatchLimits{}.withDefaults()}
	at := func(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }
	told, _ := feed(&w, at(0))
	assert.True(t, told)
	for i := range 10 {
		told, _ = feed(&w, at(float64(i)))
		assert.False(t, told)
	}
	told, dropped := feed(&w, at(15))
	assert.True(t, told)
	assert.Equal(t, 10, dropped)
	assert.Equal(t, 1, w.strikes)
	told, dropped = feed(&w, at(30))
	assert.True(t, told)
	assert.Zero(t, dropped)
	assert.Zero(t, w.strikes, "a clean window forgives")
}

func TestThreeStrikesInARowSwitchOff(t *testing.T) {
	w := window{limits: WatchLimits{}.withDefaults()}
	now := noon
	for strike := 1; strike <= 3; strike++ {
		told, _ := feed(&w, now)
		require.True(t, told)
		told, _ = feed(&w, now.Add(time.Second))
		require.False(t, told)
		now = now.Add(DefaultPerJob)
		dropped, ended := w.close(now)
		assert.True(t, ended)
		assert.Equal(t, 1, dropped)
		assert.Equal(t, strike == 3, w.off)
	}
	told, _ := feed(&w, now.Add(time.Hour))
	assert.False(t, told)
}

func TestSilenceForgivesAsACleanWindowDoes(t *testing.T) {
	w := window{limits: WatchLimits{}.withDefaults()}
	now := noon
	for range 10 {
		feed(&w, now)
		feed(&w, now)
		now = now.Add(DefaultPerJob)
		w.close(now)
		now = now.Add(DefaultPerJob) // As long again without any.
	}
	assert.False(t, w.off)
}

func TestTheBreakerOpensAndIsReleased(t *testing.T) {
	b := breaker{limits: WatchLimits{}.withDefaults()}
	for range DefaultBurst {
		ok, tripped := b.allow(noon)
		assert.True(t, ok)
		assert.False(t, tripped)
	}
	ok, tripped := b.allow(noon.Add(9 * time.Second))
	assert.False(t, ok)
	assert.True(t, tripped)
	ok, tripped = b.allow(noon.Add(10 * time.Second))
	assert.False(t, ok)
	assert.False(t, tripped, "once")
	_, released := b.release(noon.Add(38 * time.Second))
	assert.False(t, released)
	dropped, released := b.release(noon.Add(39 * time.Second))
	assert.True(t, released)
	assert.Equal(t, 2, dropped)
	ok, _ = b.allow(noon.Add(39 * time.Second))
	assert.True(t, ok)
}

// Whatever comes when, no limit is ever passed, and each match is told or counted.
func TestTheLimitsHoldForAnyMatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := WatchLimits{
			PerJob: time.Duration(rapid.IntRange(1, 20).Draw(t, "per job")) * time.Second, Strikes: rapid.IntRange(1, 4).Draw(t, "strikes"),
			Burst: rapid.IntRange(1, 5).Draw(t, "burst"), BurstWindow: 10 * time.Second, Break: 30 * time.Second,
		}
		windows := make([]window, rapid.IntRange(1, 5).Draw(t, "jobs"))
		for i := range windows {
			windows[i].limits = limits
		}
		b := breaker{limits: limits}
		var toldAt []time.Time
		last := make([]time.Time, len(windows))
		now := noon
		matches, told, dropped, off := 0, 0, 0, 0
		for range rapid.IntRange(1, 300).Draw(t, "matches") {
			now = now.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
			i := rapid.IntRange(0, len(windows)-1).Draw(t, "job")
			w := &windows[i]
			matches++
			n, _ := w.close(now)
			dropped += n
			if w.off {
				off++
				continue
			}
			if !w.match(now) {
				continue // It is counted when the window ends.
			}
			n, _ = b.release(now)
			dropped += n
			ok, _ := b.allow(now)
			if !ok {
				continue // As above.
			}
			w.told(now)
			told++
			require.True(t, last[i].IsZero() || now.Sub(last[i]) >= limits.PerJob, "one per window")
			last[i] = now
			toldAt = append(toldAt, now)
			if k := len(toldAt) - 1 - limits.Burst; k >= 0 {
				require.GreaterOrEqual(t, now.Sub(toldAt[k]), limits.BurstWindow, "no more than Burst in BurstWindow")
			}
		}
		far := now.Add(time.Hour)
		for i := range windows {
			n, _ := windows[i].close(far)
			dropped += n
		}
		n, _ := b.release(far)
		dropped += n
		require.Equal(t, matches, told+dropped+off)
	})
}
