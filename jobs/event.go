package jobs

import "time"

// EventKind says what an [Event] is about.
type EventKind string

// The kinds of events.
const (
	// Completed: a job that was started with Notify has ended, or one whose watching
	// was switched off. It is told once, and not at all if the caller has seen the end
	// before, by Poll, Log, Wait or Stop.
	Completed EventKind = "completed"

	// Matched: a line matched one of the job's watch patterns.
	Matched EventKind = "matched"

	// Suppressed: a window in which a job matched more than once is over; Count is how
	// many matches were not told.
	Suppressed EventKind = "suppressed"

	// WatchOff: the job matched too often in too many windows in a row, and is watched
	// no more. Its completion will be told. Count is as for Suppressed.
	WatchOff EventKind = "watch_off"

	// Waits: a program of a job with Notify waits for what is typed on the job's terminal; Why says for what. It is told
	// once for each wait, and is in the History also without Notify.
	Waits EventKind = "waits"

	// BreakerTripped: there were too many events over all jobs, and there will be no
	// matches for a while. Count is how many there were.
	BreakerTripped EventKind = "breaker_tripped"

	// BreakerReleased: matches are told again. Count is how many were not.
	BreakerReleased EventKind = "breaker_released"

	// These are in the History of a job, and not told: it was started, or taken over
	// from the foreground; found after its owner had crashed; somebody
	// stopped it, or closed its stdin; it has ended, or Why it was lost.
	Started   EventKind = "started"
	Adopted   EventKind = "adopted"
	Recovered EventKind = "recovered"
	StopAsked EventKind = "stop_asked"
	EndOfFile EventKind = "stdin_closed"
	Ended     EventKind = "ended"

	// Missed: nobody took the events, and Count of them were dropped.
	Missed EventKind = "missed"
)

// Event is something that has happened. It is a value.
type Event struct {
	Kind EventKind `json:"kind"`
	Time time.Time `json:"time"`
	Job  *Job      `json:"job,omitempty"` // as it was then; nil if it is about all of them

	// Of a match: the pattern, the line, without escape sequences, its number from
	// 1, and the offset of its first byte.
	Pattern string `json:"pattern,omitempty"`
	Line    string `json:"line,omitempty"`
	Number  int64  `json:"number,omitempty"`
	Offset  int64  `json:"offset,omitempty"`

	Count int    `json:"count,omitempty"`
	Why   string `json:"why,omitempty"` // of an end, a stop or a wait, in words
}
