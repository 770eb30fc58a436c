package interrupt

import "time"

// sight is what is known of a shell that was stopped for a look.
type sight struct {
	gone   bool // it has ended, or hangs in the kernel
	stood  bool // somebody else had stopped it before
	awaits bool // children that it may wait for are alive, and stopped
	ended  bool // a child had ended
	waits  bool // it is in a wait for a child, or in a read of what one prints
	asleep bool // it slept before it was stopped
	traps  bool // it has a handler for the signal that it is to get, which is not SIGINT
	late   bool // no better moment is to be waited for

	ran time.Duration // on a processor since it last waited for a child

	// How many looks in a row found it so.
	childless int // with no child, nor about to reap one
	elsewhere int // asleep in something that is no wait: the open of a fifo
}

// count brings the counts up to date with the rest.
func (s *sight) count() {
	switch {
	case s.ended || s.awaits:
		s.childless = 0
	case s.asleep || !s.waits: // Else it has just reaped a child.
		s.childless++
	}
	if s.elsewhere++; s.waits || !s.asleep {
		s.elsewhere = 0
	}
}

// goodMoments are the sights after which a shell stays stopped, to get its signal. At
// any other it goes on for an instant.
var goodMoments = []struct {
	why string
	is  func(sight) bool
}{
	{"there is nobody left to stop", func(s sight) bool { return s.gone }},
	{"it stays as somebody else wants it, and would get past that if it went on", func(s sight) bool { return s.stood }},
	{"it waits for children that are alive, and gets its signal with them", func(s sight) bool { return s.awaits && s.waits }},
	{"it waits, but for none that is to be stopped: for jobs in the background", func(s sight) bool { return s.childless >= alone && s.asleep && s.waits }},
	{"it computes, and finds the signal before its next child", func(s sight) bool { return s.childless >= alone && !s.traps }},
	// A handler only notes a signal: a child that comes just then would be waited for first.
	{"it computes for so long that no child is under way", func(s sight) bool { return s.ran > computes }},
	{"it sleeps in a call that its signal interrupts", func(s sight) bool { return s.elsewhere >= alone }},
	{"there is no more time", func(s sight) bool { return s.late }},
}

// isGood reports whether one of the good moments is seen.
func (s sight) isGood() bool {
	for _, moment := range goodMoments {
		if moment.is(s) {
			return true
		}
	}
	return false
}
