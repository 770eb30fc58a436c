package screen

import (
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/displaywidth"
)

const (
	joiner   = 0x200d // ZWJ
	replaced = utf8.RuneError
)

// specialDrawing is what the line drawing set has for '_' and the bytes behind it.
var specialDrawing = [...]rune{
	' ', '◆', '▒', '␉', '␌', '␍', '␊', '°', '±', '␤', '␋', '┘', '┐', '┌', '└', '┼',
	'⎺', '⎻', '─', '⎼', '⎽', '├', '┤', '┴', '┬', '│', '≤', '≥', 'π', '≠', '£', '·',
}

// ascii prints text in which every byte is a column.
func (e *Emulator) ascii(p []byte) {
	m := &e.modal
	if m.LineDrawing[shift(m.ShiftOut)] {
		for _, b := range p {
			r := rune(b)
			if b >= '_' {
				r = specialDrawing[b-'_']
			}
			e.place(r, 1)
		}
		return
	}
	e.last = rune(p[len(p)-1])
	for len(p) > 0 {
		if e.wrap && !m.AutoWrapOff {
			e.x = 0
			e.index()
		}
		n := min(len(p), e.size.Cols-e.x)
		row := e.line().row(e.size.Cols)
		if m.Insert {
			insert(row, e.x, n, e.blank())
		}
		split(row, e.x)
		split(row, e.x+n)
		c := e.pen
		for i, b := range p[:n] {
			c.text = uint32(b)
			row[e.x+i] = c
		}
		p = p[n:]
		e.advance(n)
	}
}

// shift is the character set in use.
func shift(out bool) int {
	if out {
		return 1
	}
	return 0
}

// utf8 prints one rune, and takes bytes of it until it is whole. What is not UTF-8 is one
// replacement character for as many bytes as could have begun a rune.
func (e *Emulator) utf8(p []byte) int {
	if e.pending == 0 && utf8.FullRune(p) {
		if r, n := utf8.DecodeRune(p); r != utf8.RuneError || n > 1 {
			e.print(r)
			return n
		}
	}
	e.partial[e.pending] = p[0]
	now := e.partial[:e.pending+1]
	if !utf8.FullRune(now) {
		e.pending++
		return 1
	}
	r, n := utf8.DecodeRune(now)
	took := 1
	if r == utf8.RuneError && n == 1 && e.pending > 0 {
		took = 0 // This byte begins something else.
	}
	e.pending = 0
	e.print(r)
	return took
}

func (e *Emulator) print(r rune) {
	if r < 0xa0 {
		return // A C1 control that was written as UTF-8: terminals differ, and nobody means it.
	}
	switch width := runeWidth(r); {
	case width == 0:
		if mark(r) {
			e.combine(r)
		} // The rest is invisible: it would only hide what is there.
	case e.joins(r):
		e.combine(r)
	default:
		e.place(r, width)
	}
}

// runeWidth is in columns, 0 to 2.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case jamo(r):
		return 0
	case r >= 0x1f1e6 && r <= 0x1f1ff:
		return 1 // Two of these letters are a flag, of two columns together.
	}
	return min(displaywidth.Rune(r), 2)
}

// mark reports whether a rune without a width is part of the character before it.
func mark(r rune) bool { return r == joiner || jamo(r) || unicode.In(r, unicode.M) }

// visible reports whether a rune can be seen, or is part of a character. Controls are not, nor
// is what only turns the direction of the text around it, or stands for nothing.
func visible(r rune) bool {
	if r < 0xa0 {
		return r >= ' ' && r < del
	}
	return runeWidth(r) > 0 || mark(r)
}

// jamo are the vowels and final consonants of Hangul, which are drawn into the first one.
func jamo(r rune) bool { return r >= 0x1160 && r <= 0x11ff || r >= 0xd7b0 && r <= 0xd7ff }

// previous is the column of the character before the cursor.
func (e *Emulator) previous() (x int, ok bool) {
	x = e.x
	if !e.wrap {
		x--
	}
	if x > 0 && e.line().at(x).attr&tail != 0 {
		x--
	}
	return x, x >= 0
}

// joins reports whether the rune is part of the emoji before it.
func (e *Emulator) joins(r rune) bool {
	if r < 0x2000 {
		return false
	}
	x, ok := e.previous()
	if !ok {
		return false
	}
	c := e.line().at(x)
	if c.attr&wide == 0 {
		return false
	}
	if skin(r) {
		return c.text >= 0x1f000 || c.text >= 0x2600 && c.text < 0x2800 // A color of skin.
	}
	if c.text < firstCluster {
		return false
	}
	last, _ := utf8.DecodeLastRuneInString(e.text(c))
	return last == joiner
}

// skin are the colors of skin, which emoji can have.
func skin(r rune) bool { return r >= 0x1f3fb && r <= 0x1f3ff }

// combine adds a rune to the character before the cursor. At the start of a line there is none.
func (e *Emulator) combine(r rune) {
	if x, ok := e.previous(); ok {
		e.cluster(&e.line().row(e.size.Cols)[x], r)
	}
}

// place prints a rune of one or two columns.
func (e *Emulator) place(r rune, width int) {
	cols := e.size.Cols
	if width > cols {
		return
	}
	if e.wrap && !e.modal.AutoWrapOff || e.x+width > cols {
		if e.modal.AutoWrapOff {
			return // Half of it does not fit.
		}
		e.x = 0
		e.index()
	}
	e.last = r
	row := e.line().row(cols)
	if e.modal.Insert {
		insert(row, e.x, width, e.blank())
	}
	split(row, e.x)
	split(row, e.x+width)
	row[e.x] = e.pen
	row[e.x].text = uint32(r)
	if width > 1 {
		row[e.x].attr |= wide
		row[e.x+1] = e.pen
		row[e.x+1].attr |= tail
	}
	e.advance(width)
}

// advance moves the cursor behind what was printed. Behind a full line it waits.
func (e *Emulator) advance(n int) {
	e.x += n
	e.wrap = e.x >= e.size.Cols
	if e.wrap {
		e.x = e.size.Cols - 1
	}
}

// repeat is REP. No program repeats more than a line.
func (e *Emulator) repeat(n int) {
	if e.last == 0 {
		return
	}
	r := e.last
	for range min(n, e.size.Cols) {
		e.place(r, runeWidth(r))
	}
}
