package command

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// Collapse returns b as a terminal would leave it where a program redraws a
// line with carriage returns: of "10%\r20%\r30%\n" stays "30%\n". A carriage
// return before a newline is a line end and goes. A shorter frame leaves what
// it does not overwrite, as on a screen. Escape sequences are not interpreted.
func Collapse(b []byte) []byte {
	if bytes.IndexByte(b, '\r') < 0 {
		return b
	}
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		line, rest, found := bytes.Cut(b, []byte("\n"))
		b = rest
		out = append(out, overwrite(bytes.TrimRight(line, "\r"))...)
		if found {
			out = append(out, '\n')
		}
	}
	return out
}

// overwrite draws the frames of one line over one another, rune by rune
// where it is text.
func overwrite(line []byte) []byte {
	frames := bytes.Split(line, []byte("\r"))
	if len(frames) == 1 {
		return line
	}
	if !utf8.Valid(line) {
		return draw(frames)
	}
	runes := make([][]rune, len(frames))
	for i, frame := range frames {
		runes[i] = []rune(string(frame))
	}
	return []byte(string(draw(runes)))
}

// draw draws frames of bytes, or of runes, over one another.
func draw[T byte | rune](frames [][]T) (screen []T) {
	for _, frame := range frames {
		if len(frame) >= len(screen) {
			screen = slices.Clone(frame)
			continue
		}
		copy(screen, frame)
	}
	return screen
}
