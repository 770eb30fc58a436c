package screen

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// rewired is what is read of it. Only one screen has another one behind it: how many there
// are in the text is not to decide how deep and how long that is looked at.
type rewired struct {
	wired
	Normal json.RawMessage `json:"normal"`
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

// UnmarshalJSON reads what MarshalJSON writes. It trusts none of it: whatever it is, it is an
// error, or a Screen that can be shown. What a cell or a title cannot have is dropped.
func (s *Screen) UnmarshalJSON(b []byte) error {
	read, behind, err := parse(b)
	if err != nil {
		return fmt.Errorf("screen: %w", err)
	}
	if len(behind) > 0 {
		normal, deeper, err := parse(behind)
		switch {
		case err != nil:
			return fmt.Errorf("screen: the normal one: %w", err)
		case !read.Alternate || len(deeper) > 0 || normal.Size != read.Size:
			return errors.New("screen: only an alternate screen has a normal one behind it, of the same size")
		}
		read.normal = normal
	}
	*s = *read
	return nil
}

// parse returns a screen without the one behind it, which is still to be parsed, if there is one.
func parse(b []byte) (s *Screen, behind []byte, err error) {
	var w rewired
	if err := json.Unmarshal(b, &w); err != nil {
		return nil, nil, err
	}
	if w.Size != w.Clamp() || len(w.Lines) != w.Rows {
		return nil, nil, fmt.Errorf("%d lines are no screen of %d columns and %d rows", len(w.Lines), w.Cols, w.Rows)
	}
	if w.Cursor.Shape > CursorBar {
		return nil, nil, fmt.Errorf("there is no shape %d of a cursor", w.Cursor.Shape)
	}
	styles, err := w.styles()
	if err != nil {
		return nil, nil, err
	}
	if w.Pen < 0 || w.Pen >= len(styles) {
		return nil, nil, fmt.Errorf("there is no style %d", w.Pen)
	}
	s = &Screen{
		Size: w.Size, Cursor: Cursor(w.Cursor), Title: clean([]byte(w.Title), maxTitle), Alternate: w.Alternate,
		Cells: make([][]Cell, w.Rows), Pen: styles[w.Pen],
	}
	s.Cursor.Col, s.Cursor.Row = min(max(w.Cursor.Col, 0), w.Cols-1), min(max(w.Cursor.Row, 0), w.Rows-1)
	s.wrap = w.Wrap && s.Cursor.Col == w.Cols-1
	if w.Modes != nil {
		if err := w.Modes.check(w.Rows); err != nil {
			return nil, nil, err
		}
		s.Modes = *w.Modes
	}
	for row, runs := range w.Lines {
		if s.Cells[row], err = unrun(runs, styles, w.Cols); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", row, err)
		}
	}
	if string(w.Normal) == "null" {
		w.Normal = nil
	}
	return s, w.Normal, nil
}

// styles returns what the runs have numbers of.
func (w *rewired) styles() ([]Style, error) {
	list := make([]Style, len(w.Styles))
	for i, style := range w.Styles {
		if style.Underline > UnderlineDashed {
			return nil, fmt.Errorf("style %d: there is no underline %d", i, style.Underline)
		}
		style.Link = clean([]byte(style.Link), maxLink)
		list[i] = Style(style)
	}
	return list, nil
}

// unrun returns the cells of a line.
func unrun(runs []run, styles []Style, cols int) ([]Cell, error) {
	cells := make([]Cell, 0, cols)
	for _, r := range runs {
		if r.Style < 0 || r.Style >= len(styles) {
			return nil, fmt.Errorf("there is no style %d", r.Style)
		}
		style, width := styles[r.Style], 1
		if r.Wide {
			width = 2
		}
		for text := r.Text; ; {
			n := len(text)
			if !r.One {
				if n == 0 {
					break
				}
				_, n = utf8.DecodeRuneInString(text)
			}
			if len(cells)+width > cols {
				return nil, fmt.Errorf("it is longer than %d columns", cols)
			}
			cells = append(cells, Cell{Text: cellText(text[:n], width), Width: width, Style: style})
			if r.Wide {
				cells = append(cells, Cell{Style: style})
			}
			if text = text[n:]; r.One {
				break
			}
		}
	}
	used := len(cells)
	cells = cells[:cols]
	paintBlank(cells[used:])
	return cells, nil
}

// cellText returns the part of a text that a cell of this width can have: one character, and
// what combines with it. If there is none, something stands in its place.
func cellText(text string, width int) string {
	if len(text) == 1 && visible(rune(text[0])) && width == 1 {
		return text // So are nearly all.
	}
	var b strings.Builder
	last := rune(0)
	for _, r := range text {
		switch {
		case !visible(r):
			continue
		case b.Len() == 0:
			if runeWidth(r) != width && r != ' ' { // A space stands for what cannot be shown.
				return string(replaced)
			}
		case runeWidth(r) > 0 && (width == 1 || r < 0x2000 || last != joiner && !skin(r)):
			return b.String() // Another character.
		}
		if b.Len()+utf8.RuneLen(r) > maxCluster {
			break
		}
		b.WriteRune(r)
		last = r
	}
	if b.Len() == 0 {
		return " "
	}
	return b.String()
}
