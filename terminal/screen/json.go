package screen

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

// wired is a Screen in JSON. What a screen of cells would say again and again is said once:
// neighbours of one style are a run, and styles have numbers.
type wired struct {
	Size
	Cursor    wiredCursor  `json:"cursor"`
	Title     string       `json:"title,omitempty"`
	Alternate bool         `json:"alternate,omitempty"`
	Modes     *Modes       `json:"modes,omitempty"`
	Pen       int          `json:"pen,omitempty"`
	Wrap      bool         `json:"wrap,omitempty"`
	Styles    []wiredStyle `json:"styles"`           // the first is plain
	Lines     [][]run      `json:"lines"`            // what is behind the last run is blank
	Normal    *Screen      `json:"normal,omitempty"` // behind an alternate one
}

type wiredCursor struct {
	Col     int         `json:"col"`
	Row     int         `json:"row"`
	Visible bool        `json:"visible"`
	Shape   CursorShape `json:"shape,omitempty"`
	Blink   bool        `json:"blink,omitempty"`
}

type wiredStyle struct {
	Fg             Color         `json:"fg,omitzero"`
	Bg             Color         `json:"bg,omitzero"`
	UnderlineColor Color         `json:"underline_color,omitzero"`
	Bold           bool          `json:"bold,omitempty"`
	Faint          bool          `json:"faint,omitempty"`
	Italic         bool          `json:"italic,omitempty"`
	Blink          bool          `json:"blink,omitempty"`
	Reverse        bool          `json:"reverse,omitempty"`
	Conceal        bool          `json:"conceal,omitempty"`
	Strike         bool          `json:"strike,omitempty"`
	Underline      UnderlineKind `json:"underline,omitempty"`
	Link           string        `json:"link,omitempty"`
}

// run is cells of one style: each rune is one, or all of the text is.
type run struct {
	Text  string `json:"t"`
	Style int    `json:"s,omitempty"`
	Wide  bool   `json:"w,omitempty"` // they are two columns wide each
	One   bool   `json:"one,omitempty"`
}

// MarshalJSON gives what UnmarshalJSON makes an equal Screen of. It is some times as long as
// the text.
func (s *Screen) MarshalJSON() ([]byte, error) {
	w := wired{
		Size: s.Size, Cursor: wiredCursor(s.Cursor), Title: s.Title, Alternate: s.Alternate, Wrap: s.wrap,
		Styles: []wiredStyle{{}}, Lines: make([][]run, len(s.Cells)), Normal: s.normal,
	}
	if s.Modes != (Modes{}) {
		w.Modes = &s.Modes
	}
	numbers := map[Style]int{{}: 0}
	number := func(style Style) int {
		n, ok := numbers[style]
		if !ok {
			n = len(w.Styles)
			numbers[style] = n
			w.Styles = append(w.Styles, wiredStyle(style))
		}
		return n
	}
	w.Pen = number(s.Pen)
	for row, cells := range s.Cells {
		for len(cells) > 0 && cells[len(cells)-1].blank() {
			cells = cells[:len(cells)-1]
		}
		runs := []run{} // Not null.
		for _, c := range cells {
			if c.Width == 0 {
				continue // It belongs to the one before.
			}
			next := run{Text: c.Text, Style: number(c.Style), Wide: c.Width > 1, One: utf8.RuneCountInString(c.Text) != 1}
			if n := len(runs) - 1; n >= 0 && !next.One && !runs[n].One && runs[n].Style == next.Style && runs[n].Wide == next.Wide {
				runs[n].Text += c.Text
				continue
			}
			runs = append(runs, next)
		}
		w.Lines[row] = runs
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Screen) UnmarshalJSON(b []byte) error {
	var w wired
	if err := json.Unmarshal(b, &w); err != nil {
		return fmt.Errorf("screen: %w", err)
	}
	if w.Size != w.Clamp() || len(w.Lines) != w.Rows {
		return fmt.Errorf("screen: %d lines are no screen of %d columns and %d rows", len(w.Lines), w.Cols, w.Rows)
	}
	styled := func(n int) bool { return n >= 0 && n < len(w.Styles) }
	if !styled(w.Pen) {
		return fmt.Errorf("screen: there is no style %d", w.Pen)
	}
	read := Screen{
		Size: w.Size, Cursor: Cursor(w.Cursor), Title: w.Title, Alternate: w.Alternate, wrap: w.Wrap,
		Cells: make([][]Cell, w.Rows), Pen: Style(w.Styles[w.Pen]), normal: w.Normal,
	}
	if read.normal != nil && (!read.Alternate || read.normal.normal != nil || read.normal.Size != read.Size) {
		return errors.New("screen: only an alternate screen has a normal one behind it, of the same size")
	}
	read.Cursor.Col, read.Cursor.Row = min(max(w.Cursor.Col, 0), w.Cols-1), min(max(w.Cursor.Row, 0), w.Rows-1)
	if w.Modes != nil {
		read.Modes = *w.Modes
	}
	for row, runs := range w.Lines {
		cells := make([]Cell, 0, w.Cols)
		for _, r := range runs {
			if !styled(r.Style) {
				return fmt.Errorf("screen: line %d: there is no style %d", row, r.Style)
			}
			style := Style(w.Styles[r.Style])
			texts := []string{r.Text}
			if !r.One {
				texts = runes(r.Text)
			}
			for _, text := range texts {
				if r.Wide {
					cells = append(cells, Cell{Text: text, Width: 2, Style: style}, Cell{Style: style})
				} else {
					cells = append(cells, Cell{Text: text, Width: 1, Style: style})
				}
			}
			if len(cells) > w.Cols {
				return fmt.Errorf("screen: line %d is longer than %d columns", row, w.Cols)
			}
		}
		used := len(cells)
		cells = slices.Grow(cells, w.Cols-used)[:w.Cols]
		paintBlank(cells[used:])
		read.Cells[row] = cells
	}
	*s = read
	return nil
}

func runes(text string) []string {
	list := make([]string, 0, len(text))
	for _, r := range text {
		list = append(list, string(r))
	}
	return list
}
