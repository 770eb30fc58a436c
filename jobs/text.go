package jobs

import (
	"bytes"

	"github.com/charmbracelet/x/ansi"

	"github.com/limpet-sh/limpet/internal/runes"
)

const escape = 0x1b

// longestEscape is how long an escape sequence may be that is waited for.
const longestEscape = 256

// wholeEscapes returns how much of b does not end within an escape sequence.
func wholeEscapes(b []byte) int {
	at := bytes.LastIndexByte(b, escape)
	if at < 0 || len(b)-at > longestEscape {
		return len(b)
	}
	if _, whole := sequence(b[at:]); !whole {
		return at
	}
	return len(b)
}

// sequence returns how long the escape sequence is with which b begins, and whether its
// end is there.
func sequence(b []byte) (n int, whole bool) {
	_, _, n, state := ansi.DecodeSequence(b, ansi.NormalState, nil)
	return max(n, 1), state == ansi.NormalState && n > 1
}

// plain takes the escape sequences out: those that begin with ESC. What is no UTF-8 stays
// as it is, also where a terminal of old would take it for the beginning of one.
func plain(b []byte) []byte {
	kept := make([]byte, 0, len(b))
	for {
		at := bytes.IndexByte(b, escape)
		if at < 0 {
			return append(kept, b...)
		}
		kept = append(kept, b[:at]...)
		n, whole := sequence(b[at:])
		if !whole && n > longestEscape {
			n = 1 // It never ends, and would take everything with it.
		}
		b = b[at+n:]
	}
}

// splitLines splits text into lines, without their ends. The last one may have none.
func splitLines(b []byte) []string {
	var lines []string
	for line := range bytes.Lines(b) {
		lines = append(lines, string(bytes.TrimRight(line, "\r\n")))
	}
	return lines
}

// shorten bounds a line in an event.
func shorten(text string) string {
	const most = 1 << 10
	if len(text) <= most {
		return text
	}
	return text[:runes.Whole([]byte(text[:most]))] + "..."
}
