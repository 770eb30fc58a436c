package jobs

import "time"

// window bounds the events of one job's watch patterns: one in each window of time.
// The caller says what time it is.
type window struct {
	limits WatchLimits

	ends    time.Time // of the present window, or the last one; zero if there was none
	open    bool
	dropped int // matches in it that made no event
	strikes int // windows in a row that had such
	off     bool
}

// match takes a match, and reports whether it shall be told.
func (w *window) match(now time.Time) bool {
	if w.off {
		return false
	}
	if w.open && now.Before(w.ends) {
		w.dropped++
		return false
	}
	return true
}

// told opens a window: the match was told, and not kept back by somebody else.
func (w *window) told(now time.Time) {
	if !w.ends.IsZero() && now.Sub(w.ends) >= w.limits.PerJob {
		w.strikes = 0 // A window's time went by without any.
	}
	w.open, w.ends = true, now.Add(w.limits.PerJob)
}

// close ends the window if it is over, and returns how many matches were not told
// in it. Call it before match, and when due says.
func (w *window) close(now time.Time) (dropped int, ended bool) {
	if !w.open || now.Before(w.ends) {
		return 0, false
	}
	dropped, w.dropped, w.open = w.dropped, 0, false
	if dropped == 0 {
		w.strikes = 0
	} else if w.strikes++; w.strikes >= w.limits.Strikes {
		w.off = true
	}
	return dropped, true
}

// due is when the window ends; zero if none is open.
func (w *window) due() time.Time {
	if !w.open {
		return time.Time{}
	}
	return w.ends
}

// breaker bounds the events of all jobs' watch patterns together.
type breaker struct {
	limits WatchLimits

	recent  []time.Time // when events were told, in the last BurstWindow
	opened  time.Time   // zero while it is closed, and events pass
	dropped int         // since it was opened
}

// allow reports whether a match may be told, and whether it was the one that opened
// the breaker.
func (b *breaker) allow(now time.Time) (ok, tripped bool) {
	if !b.opened.IsZero() {
		b.dropped++
		return false, false
	}
	keep := b.recent[:0]
	for _, t := range b.recent {
		if now.Sub(t) < b.limits.BurstWindow {
			keep = append(keep, t)
		}
	}
	if b.recent = keep; len(b.recent) >= b.limits.Burst {
		b.opened, b.dropped, b.recent = now, 1, b.recent[:0]
		return false, true
	}
	b.recent = append(b.recent, now)
	return true, false
}

// release closes the breaker if its time is over, and returns how many matches were
// not told meanwhile. Call it before allow, and when due says.
func (b *breaker) release(now time.Time) (dropped int, released bool) {
	if b.opened.IsZero() || now.Before(b.due()) {
		return 0, false
	}
	dropped = b.dropped
	b.opened, b.dropped = time.Time{}, 0
	return dropped, true
}

// due is when the breaker is to be released; zero while it is closed.
func (b *breaker) due() time.Time {
	if b.opened.IsZero() {
		return time.Time{}
	}
	return b.opened.Add(b.limits.Break)
}
