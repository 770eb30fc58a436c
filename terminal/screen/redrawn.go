package screen

import "bytes"

// The sequences that erase within a line, as programs use them that redraw one: to its end,
// and all of it (ECMA-48, EL).
var (
	csiBytes = []byte("\x1b[")
	eraseAll = []byte("\x1b[2K")
	erases   = [][]byte{[]byte("\x1b[K"), []byte("\x1b[0K"), eraseAll}
)

// Redrawn is what is left in the end of a line, without its newline, that a program redraws, as for progress: carriage returns and erasures
// are carried out, and all else that is no text is left out, as by Plain.
func Redrawn(line []byte) string {
	line = bytes.TrimRight(line, "\r")
	if !bytes.ContainsAny(line, "\r\x1b") {
		return Plain(line)
	}
	var cells []rune
	for frame := range bytes.SplitSeq(line, []byte("\r")) {
		column := 0
		for len(frame) > 0 {
			piece, erase := nextErase(frame)
			for _, r := range Plain(piece) {
				for len(cells) < column { // It was erased before it.
					cells = append(cells, ' ')
				}
				if column < len(cells) {
					cells[column] = r
				} else {
					cells = append(cells, r)
				}
				column++
			}
			frame = frame[len(piece)+len(erase):]
			switch {
			case erase == nil:
			case bytes.Equal(erase, eraseAll):
				cells = cells[:0] // The cursor stays where it is.
			default:
				cells = cells[:min(column, len(cells))]
			}
		}
	}
	return string(cells)
}

// nextErase returns what is before the next sequence that erases, and that.
func nextErase(b []byte) (before, erase []byte) {
	for from := 0; ; from++ {
		i := bytes.Index(b[from:], csiBytes)
		if i < 0 {
			return b, nil
		}
		from += i
		for _, sequence := range erases {
			if bytes.HasPrefix(b[from:], sequence) {
				return b[:from], sequence
			}
		}
	}
}
