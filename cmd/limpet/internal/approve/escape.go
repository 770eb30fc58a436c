package approve

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Escape returns a text in which nothing moves the cursor, and nothing is hidden: control characters, marks of direction,
// characters without width, blanks that are not the blank, and bytes that are no UTF-8 are shown as escapes.
func Escape(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch {
		case r == utf8.RuneError && size == 1, r < 0x20, r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case r > 0xffff && !visible(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case !visible(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// visible reports whether a character is seen where it stands. The Hangul fillers are letters, and blank.
func visible(r rune) bool {
	switch r {
	case 0x115f, 0x1160, 0x3164, 0xffa0, 0x2800, 0x034f, 0x17b4, 0x17b5:
		return false
	}
	if r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef || unicode.Is(unicode.Mn, r) {
		return false
	}
	return unicode.IsPrint(r)
}
