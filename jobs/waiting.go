package jobs

import (
	"slices"
	"time"

	"github.com/limpet-sh/limpet/internal/supervisor"
	"github.com/limpet-sh/limpet/internal/tty"
)

// Waiting is a program that waits for what is typed on its terminal, as the kernel says. It is a value.
type Waiting struct {
	For     string    `json:"for"`     // one of the constants
	Program string    `json:"program"` // its name, cut at 15 bytes, which it may have given itself
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"` // when something was printed or typed last
}

// What a program waits for.
const (
	ForPassword = tty.ForPassword // a line that is not shown: the terminal collects lines, and its echo is off
	ForLine     = tty.ForLine     // a line, which the terminal collects and shows
	ForKey      = tty.ForKey      // keys, as editors and pagers do
	ForCommand  = tty.ForCommand  // the next command: it is a shell at its prompt
)

// String says it in words, as in "sudo waits for a password (echo is off)".
func (w Waiting) String() string { return tty.Waiting(w).String() }

// tellWait tells what a job waits for, unless that was told before, and returns what was told last.
func (r *Registry) tellWait(j *job, f *files, told *supervisor.Waiting) *supervisor.Waiting {
	now := f.waits
	if now == nil || told != nil && now.PID == told.PID && now.For == told.For && now.Typed == told.Typed {
		return told // Something else may print meanwhile.
	}
	event := Event{Kind: Waits, Why: now.String()}
	if told == nil && r.toldWait(j, event.Why, now.Since) {
		return now
	}
	if j.spec.Notify {
		r.tellOf(j, event)
	} else {
		r.note(j, event)
	}
	return now
}

// toldWait reports whether an earlier owner of the job has told the same, and nothing was printed or typed since.
func (r *Registry) toldWait(j *job, why string, since time.Time) bool {
	events, _ := r.History(j.spec.ID) // Without one, it is told.
	for _, event := range slices.Backward(events) {
		if event.Kind == Waits {
			return event.Why == why && !event.Time.Before(since)
		}
	}
	return false
}
