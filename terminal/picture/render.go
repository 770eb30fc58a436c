package picture

import "github.com/limpet-sh/limpet/terminal/screen"

// A picture has cells of screen.CellWidth by screen.CellHeight, times its scale, and a margin.
const margin = 8

// drawing is a screen that is drawn.
type drawing struct{ *screen.Screen }

// ink is how a cell is drawn: 24 bits, all styles and modes accounted for.
type ink struct {
	fg, bg, underline screen.Color
}

// ink returns the colors of a cell. The block cursor is the cell with its colors exchanged.
func (s drawing) ink(col, row int) ink {
	style := s.Cells[row][col].Style
	fg, bg := solid(style.Fg, screen.DefaultFg), solid(style.Bg, screen.DefaultBg)
	if s.Modes.ReverseScreen {
		fg, bg = solid(style.Fg, screen.DefaultBg), solid(style.Bg, screen.DefaultFg)
	}
	if style.Faint {
		fg = mix(fg, bg)
	}
	if style.Reverse {
		fg, bg = bg, fg
	}
	under := solid(style.UnderlineColor, fg)
	if s.Cursor.Visible && s.Cursor.Shape == screen.CursorBlock && s.cursorIn(col, row) {
		fg, bg = bg, solid(0, screen.DefaultFg)
		if fg == bg {
			fg = screen.DefaultBg
		}
		under = fg
	}
	if style.Conceal {
		fg, under = bg, bg
	}
	return ink{fg, bg, under}
}

// background is that of the cells without one of their own.
func (s drawing) background() screen.Color {
	if s.Modes.ReverseScreen {
		return screen.DefaultFg
	}
	return screen.DefaultBg
}

// cursorIn reports whether the cursor is in the cell, or in the other half of it.
func (s drawing) cursorIn(col, row int) bool {
	c := s.Cursor
	return row == c.Row && (col == c.Col || col+1 == c.Col && c.Col < len(s.Cells[row]) && s.Cells[row][c.Col].Width == 0)
}

func solid(c, missing screen.Color) screen.Color {
	if c.IsDefault() {
		c = missing
	}
	r, g, b, _ := c.RGB()
	return screen.RGB(r, g, b)
}

func mix(a, b screen.Color) screen.Color {
	r1, g1, b1, _ := a.RGB()
	r2, g2, b2, _ := b.RGB()
	half := func(a, b uint8) uint8 { return uint8((int(a)*3 + int(b)*2) / 5) }
	return screen.RGB(half(r1, r2), half(g1, g2), half(b1, b2))
}

// decorations returns what is drawn below and through the text of a cell, in its fg or its underline color.
func decorations(style screen.Style, w, h int) (under, through []box) {
	t := max(h/18, 1)
	y := h - 3*t
	switch style.Underline {
	case screen.UnderlineNone:
	case screen.UnderlineSingle:
		under = []box{{0, y, w, t, 255}}
	case screen.UnderlineDouble:
		under = []box{{0, y - t, w, t, 255}, {0, y + t, w, t, 255}}
	default:
		step := t
		switch style.Underline {
		case screen.UnderlineDotted:
			step = 2 * t
		case screen.UnderlineDashed:
			step = 4 * t
		}
		for i, x := 0, 0; x < w; i, x = i+1, x+step {
			switch {
			case style.Underline == screen.UnderlineCurly:
				wave := [...]int{0, 1, 2, 1}
				under = append(under, box{x, y + (wave[i%4]-1)*t, min(step, w-x), t, 255})
			case i%2 == 0:
				under = append(under, box{x, y, min(step, w-x), t, 255})
			}
		}
	}
	if style.Strike {
		through = []box{{0, h*11/20 - t/2, w, t, 255}}
	}
	return under, through
}

// cursorBox is the cursor where it is not a block.
func (s drawing) cursorBox(col, row, w, h int) (b box, ok bool) {
	if !s.Cursor.Visible || !s.cursorIn(col, row) {
		return box{}, false
	}
	switch s.Cursor.Shape {
	case screen.CursorUnderline:
		return box{0, h - h/9, w, h / 9, 255}, true
	case screen.CursorBar:
		return box{0, 0, max(h/12, 1), h, 255}, true
	}
	return box{}, false
}
