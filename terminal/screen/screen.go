package screen

import (
	"strings"
)

// Limits of a Size. Both together allow no more than maxCells.
const (
	maxSide  = 1000
	maxCells = 500 * 1000
)

// Size is that of a terminal, in cells.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// Clamp returns the nearest size that an Emulator can have: 1 to 1000 columns and rows,
// with fewer rows where there would be more than 500,000 cells.
func (s Size) Clamp() Size {
	s.Cols = min(max(s.Cols, 1), maxSide)
	s.Rows = min(max(s.Rows, 1), maxSide, maxCells/s.Cols)
	return s
}

// CursorShape is the form of the cursor. The zero value is a block.
type CursorShape uint8

// The shapes that DECSCUSR can select.
const (
	CursorBlock CursorShape = iota
	CursorUnderline
	CursorBar
)

// Cursor is where the next character goes, counted from 0 at the top left. At the end of a
// full line it stays in the last column until the next character comes.
type Cursor struct {
	Col, Row int
	Visible  bool
	Shape    CursorShape
	Blink    bool
}

// Screen is what a terminal showed at one moment. It is a value of its own: nothing
// changes it any more, and it may be read from anywhere at once.
type Screen struct {
	Size
	Cells     [][]Cell // Rows of Cols cells
	Cursor    Cursor
	Title     string // the window's, as the program set it: without control characters, at most 1 KB
	Alternate bool   // the one that full-screen programs use, which has no scrollback
	Modes     Modes
	Pen       Style // as what is printed next looks

	wrap   bool    // the cursor waits behind the last column
	normal *Screen // what is behind the alternate screen, with the cursor as it will come back
}

// Text returns the lines without the blanks at their ends, and without the empty lines at
// the end, separated by newlines. It ends with none.
func (s *Screen) Text() string {
	var b strings.Builder
	empty := 0
	for row := range s.Cells {
		line := s.Line(row)
		if line == "" {
			empty++
			continue
		}
		if b.Len() > 0 || empty < row {
			empty++ // The end of the last line that is not empty.
		}
		for range empty {
			b.WriteByte('\n')
		}
		empty = 0
		b.WriteString(line)
	}
	return b.String()
}

// Line returns the text of a row, counted from 0, without the blanks at its end. Outside
// the screen it is empty.
func (s *Screen) Line(row int) string {
	if row < 0 || row >= len(s.Cells) {
		return ""
	}
	var b strings.Builder
	for _, c := range s.Cells[row] {
		b.WriteString(c.Text)
	}
	return strings.TrimRight(b.String(), " ")
}
