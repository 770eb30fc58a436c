package keys

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The marks around a paste, for programs that have asked for them.
const (
	pasteStart = csi + "200~"
	pasteEnd   = csi + "201~"
)

// Paste is what the terminal sends when text is pasted into it. A program that has
// asked for it can tell it from what is typed, as there are marks around it: a shell
// does not run its lines.
//
// A newline, also one with a carriage return before it, is sent as a carriage return,
// which is what the Enter key sends. All other control characters except tabs are
// sent as spaces, in every mode: so nothing in the text can end the paste early,
// interrupt a program, or press a key. (xterm does that with ESC, NUL, EOT, ENQ, BS
// and DEL by default, see disallowedPasteControls in its manual; later versions with
// what the terminal's driver reacts to as well.)
func Paste(s string) Input { return Input{text: s, paste: true} }

func encodePaste(s string, bracketed bool) []byte {
	b := make([]byte, 0, len(pasteStart)+len(s)+len(pasteEnd))
	if bracketed {
		b = append(b, pasteStart...)
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == '\n' || r == '\r':
			b = append(b, '\r')
		case r == '\t':
			b = append(b, '\t')
		case unicode.IsControl(r), size == 1 && isC1(s[0]):
			b = append(b, ' ') // In place of it, so that no two others come together.
		default:
			b = append(b, s[:size]...)
		}
		s = s[size:]
	}
	if bracketed {
		b = append(b, pasteEnd...)
	}
	return b
}

// isC1 reports whether a byte that is no part of a rune is a control character to who
// reads no UTF-8: 0x9b is CSI.
func isC1(c byte) bool { return c >= 0x80 && c <= 0x9f }
