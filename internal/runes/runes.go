// Package runes cuts text: between runes, and between lines.
package runes

import "unicode/utf8"

// Whole returns how much of b ends on a rune's border: a sequence that the end
// cuts short is left out, bytes that are no UTF-8 stay.
func Whole(b []byte) int {
	for back := 1; back < utf8.UTFMax && back <= len(b); back++ {
		if first := b[len(b)-back]; utf8.RuneStart(first) {
			if !utf8.FullRune(b[len(b)-back:]) {
				return len(b) - back
			}
			break
		}
	}
	return len(b)
}

// BrokenStart returns how many bytes at the start of b continue a rune that began
// before it.
func BrokenStart(b []byte) int {
	for i := 0; i < len(b) && i < utf8.UTFMax; i++ {
		if utf8.RuneStart(b[i]) {
			return i
		}
	}
	if len(b) < utf8.UTFMax {
		return len(b) // The end of one rune, and nothing else.
	}
	return 0 // No UTF-8 at all.
}
