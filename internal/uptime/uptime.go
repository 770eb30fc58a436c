// Package uptime tells how long ago something was, also what another process has written down, whatever the machine's clock
// was set to meanwhile.
package uptime

import "time"

// At returns when something was, as the clock has it now: recorded is what the clock had, and up what [Now] had. The two
// differ if the clock was set since. Without an up, or with one that is not of this boot, it returns recorded.
func At(recorded time.Time, up time.Duration) time.Time { return at(recorded, up, time.Now(), Now()) }

// slack is how far apart the two clocks may be though none was set: they are not read at the same instant.
const slack = time.Second

func at(recorded time.Time, up time.Duration, clock time.Time, now time.Duration) time.Time {
	if up <= 0 || up > now || recorded.IsZero() {
		return recorded
	}
	was := clock.Round(0).Add(up - now) // Without a monotonic reading, as what is recorded has none.
	if was.Sub(recorded).Abs() < slack {
		return recorded
	}
	return was
}
