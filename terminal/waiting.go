package terminal

import (
	"sync"
	"time"

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

// Asks returns what the terminal waits for if that is worth to be told: somebody is to type a line or a
// password, or a program wants a key that a shell on the terminal has started, as a pager. A shell at its prompt
// does not count, nor a program that the terminal was started for and that reads keys: to wait is what they do. It is
// nil if nothing is to be told, or if nobody knows.
func (i Info) Asks() *Waiting {
	if w := i.Waits; w != nil && w.For != ForCommand && (w.For != ForKey || w.PID != i.PID) {
		return w
	}
	return nil
}

// looks keeps what the last look for a reader of the terminal has found.
type looks struct {
	mu    sync.Mutex
	news  time.Duration // when something was new, at the last look; since the epoch
	at    time.Time     // of the last look; zero: there was none
	found *Waiting
}

// lookedFor is how long a look holds while nothing is new. A program may begin to read without a word.
const lookedFor = time.Second

// waits returns what the program waits for; nil if it does not, if something was new just now, or if nobody
// knows. The kernel is asked only here, so that a terminal which nobody asks about costs nothing.
func (p *program) waits() *Waiting {
	news := time.Duration(max(p.lastOutput.Load(), p.lastInput.Load()))
	if time.Since(epoch.Add(news)) < quiet {
		return nil
	}
	w := &p.looks
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.at.IsZero() || w.news != news || time.Since(w.at) >= lookedFor {
		w.found = nil
		if found, ok := tty.Reader(p.master, p.id); ok {
			found.Since = epoch.Add(news).Round(0)
			w.found = (*Waiting)(&found)
		}
		w.news, w.at = news, time.Now()
	}
	if w.found == nil {
		return nil
	}
	found := *w.found
	return &found
}
