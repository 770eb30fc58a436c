package tty

import (
	"fmt"
	"time"
)

// Waiting is a program that waits for what is typed on its terminal, as the kernel says.
type Waiting struct {
	For     string    `json:"for"`     // one of the constants
	Program string    `json:"program"` // its name, cut at 15 bytes, which it may have given itself
	PID     int       `json:"pid"`
	Since   time.Time `json:"since"` // when something was printed or typed last
}

// What a program waits for.
const (
	ForPassword = "password" // a line that is not shown: the terminal collects lines, and its echo is off
	ForLine     = "line"     // a line, which the terminal collects and shows
	ForKey      = "key"      // keys, as editors and pagers do
	ForCommand  = "command"  // the next command: it is a shell at its prompt
)

// String says it in words, as in "sudo waits for a password (echo is off)".
func (w Waiting) String() string {
	what := "waits for a " + w.For
	switch w.For {
	case ForPassword:
		what += " (echo is off)"
	case ForLine:
		what += " of input"
	case ForCommand:
		what = "is at its prompt"
	}
	return fmt.Sprintf("%s %s", w.Program, what)
}
