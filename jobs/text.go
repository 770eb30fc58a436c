package jobs

import (
	"bytes"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// wholeRunes returns how much of b ends on a rune's border: a sequence that the end
// cuts short is left out, bytes that are no UTF-8 stay.
func wholeRunes(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if c := b[len(b)-back]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

// brokenStart returns how many bytes at the start of b continue a rune that began
// before it.
func brokenStart(b []byte) int {
	for i := 0; i < len(b) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	return 0 // No UTF-8 at all.
}

const escape = 0x1b

// longestEscape is how long an escape sequence may be that is waited for.
const longestEscape = 256

// wholeEscapes returns how much of b does not end within an escape sequence.
func wholeEscapes(b []byte) int {
	at := bytes.LastIndexByte(b, escape)
	if at < 0 || len(b)-at > longestEscape {
		return len(b)
	}
	_, _, n, state := ansi.DecodeSequence(b[at:], ansi.NormalState, nil)
	if state != ansi.NormalState && n == len(b)-at || n == 1 {
		return at
	}
	return len(b)
}

// plain takes the escape sequences out.
func plain(b []byte) []byte { return []byte(ansi.Strip(string(b))) }
