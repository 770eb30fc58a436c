package host

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/internal/wire"
)

// What is wrong with a connection, for errors.Is.
var (
	// ErrUnreached means that the machine was not reached: nothing ran there.
	ErrUnreached = errors.New("the machine was not reached")

	// ErrLost means that the connection to the machine is lost. What is kept there stays.
	ErrLost = errors.New("the connection is lost")
)

// Error says why a machine is not reached, or not any more.
type Error struct {
	Op     string // "reach", "bring limpet to"
	Target string
	Err    error
	Said   string // the last of what was said on standard error, and before there was a limpet; for people
	Remedy string
}

func (e *Error) Error() string {
	err := e.Err
	if e.Said != "" {
		err = fmt.Errorf("%w; it said: %s", err, e.Said)
	}
	return errtext.Of("remote", e.Op, e.Target, err, e.Remedy)
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports that a connection which is lost cannot be asked, for who asks a session.
func (e *Error) Is(target error) bool {
	return target == wire.ErrUnreachable && errors.Is(e.Err, ErrLost)
}

// plain is what another machine says, without what a terminal would obey, and no more than fits into a sentence.
func plain(b []byte) string {
	const most = 500
	text := strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(string(b), "?"))
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	text = strings.Join(lines, "; ")
	if len(text) > most {
		end := text[len(text)-most:]
		text = "..." + end[runes.BrokenStart([]byte(end)):]
	}
	return text
}
