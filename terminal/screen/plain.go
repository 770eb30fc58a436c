package screen

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Plain returns output as text, in the order in which it was printed: valid UTF-8, without
// sequences, and without all that an [Emulator] does not print. Of the controls, newlines,
// carriage returns and tabs stay. What is not UTF-8 is U+FFFD, once for each piece of it.
func Plain(output []byte) string {
	var (
		p    parser
		text strings.Builder
	)
	text.Grow(len(output))
	for rest := bytes.ToValidUTF8(output, []byte(string(utf8.RuneError))); len(rest) > 0; {
		if c := rest[0]; p.state != ground || c == esc {
			// A control within a sequence counts as if it stood before it.
			if p.next(c) == actControl && layout(rune(c)) {
				text.WriteByte(c)
			}
			rest = rest[1:]
			continue
		}
		r, n := utf8.DecodeRune(rest)
		if layout(r) || visible(r) {
			text.WriteRune(r)
		}
		rest = rest[n:]
	}
	return text.String()
}

// PlainLines is Plain, where lines end as in files and not as on terminals. A program may print line ends of terminals of its
// own, too.
func PlainLines(output []byte) string { return lineEnds.Replace(Plain(output)) }

var lineEnds = strings.NewReplacer("\r\r\n", "\n", "\r\n", "\n")

// layout are the controls that text has.
func layout(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }
