package screen

import "strconv"

// forget puts a terminal of unknown state into the one that Modes.Restore begins from.
const forget = "\x1b[?1049l" + // first, as it brings back a cursor
	"\x1b[?1;5;6;9;1000;1002;1003;1004;1006;2004;2026l\x1b[?7;25;1007h" +
	"\x1b[4;20l\x1b>\x1b[>4;0m\x1b[r\x1b(B\x1b)B\x0f\x1b[0 q\x1b[m\x1b]8;;\x1b\\"

// ANSI returns what paints the screen on a real terminal of this size, of whatever it
// showed before, and puts it into the state that the program believes its terminal to be
// in: what the program prints next can follow at once. Behind the alternate screen is the
// normal one, which shows again when the program leaves. Only cursors that were saved otherwise, and
// tab stops, are not part of it.
func (s *Screen) ANSI() []byte {
	b := append(make([]byte, 0, 4096), forget...)
	b = append(b, "\x1b[?25l\x1b[?7l"...) // Without wrapping, the last cell does not scroll.
	var pen Style
	if s.Modes.Alternate {
		if n := s.normal; n != nil {
			b, pen = n.appendCells(b, pen)
			b = appendCUP(b, n.Cursor.Col, n.Cursor.Row)
			b, pen = appendStyle(b, pen, n.Pen), n.Pen
		}
		b = append(b, "\x1b[?1049h"...)
	}
	b, pen = s.appendCells(appendStyle(b, pen, Style{}), Style{})
	b = append(b, "\x1b]2;"...)
	b = append(b, clean([]byte(s.Title), maxTitle)...)
	b = append(b, "\x1b\\\x1b[?7;25h"...)

	modes := s.Modes
	modes.Alternate = false // It is shown already, or not at all.
	late := modes
	// The cursor goes to its place between those that move it and those that change what
	// a character does.
	early := Modes{Top: modes.Top, Bottom: modes.Bottom}
	late.Top, late.Bottom, late.Origin = 0, 0, false
	b = append(b, early.Restore()...)
	if s.wrap && len(s.Cells) > s.Cursor.Row { // Only a character brings it there.
		b, pen = s.appendLast(b, pen)
	} else {
		b = appendCUP(b, s.Cursor.Col, s.Cursor.Row)
	}
	if modes.Origin {
		b = append(b, "\x1b[?6h"...)
		b = appendCUP(b, s.Cursor.Col, max(s.Cursor.Row-max(int(modes.Top)-1, 0), 0))
	}
	b = appendStyle(b, pen, s.Pen)
	return append(b, late.Restore()...)
}

// appendCells appends what erases a screen and paints it anew.
func (s *Screen) appendCells(b []byte, pen Style) ([]byte, Style) {
	b = append(b, "\x1b[H\x1b[2J"...)
	for row := range s.Cells {
		b, pen = s.appendRow(b, row, pen)
	}
	return b, pen
}

// appendRow appends a row up to its last cell that is not blank.
func (s *Screen) appendRow(b []byte, row int, pen Style) ([]byte, Style) {
	cells := s.Cells[row]
	end := len(cells)
	for end > 0 && cells[end-1].blank() {
		end--
	}
	if end == 0 {
		return b, pen
	}
	b = appendCUP(b, 0, row)
	for col, c := range cells[:end] {
		if c.Width == 0 {
			continue
		}
		b = appendStyle(b, pen, c.Style)
		pen = c.Style
		b = appendText(b, c.Text)
		if c.Width > 1 || len(c.Text) > 1 && col+c.Width < end {
			b = appendCUP(b, col+c.Width, row) // A terminal may find it narrower or wider.
		}
	}
	return b, pen
}

// appendLast appends the last character of the cursor's row once more.
func (s *Screen) appendLast(b []byte, pen Style) ([]byte, Style) {
	cells := s.Cells[s.Cursor.Row]
	col := len(cells) - 1
	for col > 0 && cells[col].Width == 0 {
		col--
	}
	b = appendCUP(b, col, s.Cursor.Row)
	b = appendStyle(b, pen, cells[col].Style)
	return appendText(b, cells[col].Text), cells[col].Style
}

// appendText appends what a cell has. There are no controls in it, unless somebody has made
// the Screen by hand: the terminal that it goes to would obey them.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == del || c == 0xc2 && i+1 < len(text) && text[i+1] < 0xa0 {
			return append(b, clean([]byte(text), len(text))...)
		}
	}
	return append(b, text...)
}

func (c Cell) blank() bool {
	return (c.Text == " " || c.Text == "") && c.Width == 1 && c.Style == Style{}
}

// appendCUP appends what moves the cursor to a column and row that count from 0.
func appendCUP(b []byte, col, row int) []byte {
	return appendCSI(b, "", 'H', row+1, col+1)
}

// appendStyle appends what changes one style into another.
func appendStyle(b []byte, from, to Style) []byte {
	if from == to {
		return b
	}
	if from.Link != to.Link {
		b = append(b, "\x1b]8;;"...)
		b = append(b, clean([]byte(to.Link), maxLink)...)
		b = append(b, "\x1b\\"...)
		if from.Link = to.Link; from == to {
			return b
		}
	}
	b = append(b, "\x1b[0"...)
	for _, one := range []struct {
		set  bool
		code string
	}{
		{to.Bold, ";1"}, {to.Faint, ";2"}, {to.Italic, ";3"}, {to.Blink, ";5"},
		{to.Reverse, ";7"}, {to.Conceal, ";8"}, {to.Strike, ";9"},
	} {
		if one.set {
			b = append(b, one.code...)
		}
	}
	switch to.Underline {
	case UnderlineNone:
	case UnderlineSingle:
		b = append(b, ";4"...) // All terminals know this form.
	default:
		b = strconv.AppendUint(append(b, ";4:"...), uint64(to.Underline), 10)
	}
	b = appendColor(b, 38, to.Fg)
	b = appendColor(b, 48, to.Bg)
	b = appendColor(b, 58, to.UnderlineColor)
	return append(b, 'm')
}

// appendColor appends the parameters of 38, 48 or 58.
func appendColor(b []byte, code int, c Color) []byte {
	if c.IsDefault() {
		return b
	}
	sep := byte(';')
	if code == 58 {
		sep = ':' // With semicolons, who does not know it would take its numbers for others.
	}
	number := func(n int) {
		b = strconv.AppendInt(append(b, sep), int64(n), 10)
	}
	n, indexed := c.Index()
	switch {
	case indexed && code != 58 && n < 16:
		sep = ';'
		number(code - 8 + int(n&7) + int(n>>3)*60)
		return b
	case indexed:
		b = strconv.AppendInt(append(b, ';'), int64(code), 10)
		number(5)
		number(int(n))
		return b
	}
	b = strconv.AppendInt(append(b, ';'), int64(code), 10)
	number(2)
	if code == 58 {
		b = append(b, ':') // The color space, which is left out.
	}
	red, green, blue, _ := c.RGB()
	number(int(red))
	number(int(green))
	number(int(blue))
	return b
}
