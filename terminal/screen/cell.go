package screen

import "unicode/utf8"

// cell is a Cell in 16 bytes. The zero value is blank.
type cell struct {
	text   uint32 // 0, a rune, or firstCluster and a place in the clusters
	fg, bg Color
	attr   uint16
	extra  uint16 // a place in the extras
}

const (
	bold uint16 = 1 << iota
	faint
	italic
	blink
	reverse
	conceal
	strike
	wide // the left half of a character of two columns
	tail // its right half

	underlineShift = 12

	looks = 0xf000 | bold | faint | italic | blink | reverse | conceal | strike
)

// extra is what few cells have.
type extra struct {
	underline Color
	link      string
}

const (
	firstCluster = utf8.MaxRune + 1
	maxCluster   = 32 // bytes; the marks behind are dropped

	maxExtras = 4096
)

// interned gives numbers to values, from 1 on for extras and from 0 on for clusters.
type interned[T comparable] struct {
	values []T
	places map[T]int
}

func (in *interned[T]) place(v T) int {
	if i, ok := in.places[v]; ok {
		return i
	}
	if in.places == nil {
		in.places = map[T]int{}
	}
	in.values = append(in.values, v)
	in.places[v] = len(in.values) - 1
	return len(in.values) - 1
}

// cluster returns the text of a cell with a rune appended to it, as long as there is room.
func (e *Emulator) cluster(c *cell, r rune) {
	s := e.text(*c)
	if len(s)+utf8.RuneLen(r) > maxCluster {
		return
	}
	if e.clusterLimit = max(e.clusterLimit, 1024, e.size.Cols*e.size.Rows/4); len(e.clusters.values) >= e.clusterLimit {
		e.sweepClusters()
	}
	c.text = uint32(firstCluster + e.clusters.place(s+string(r)))
}

// sweepClusters drops those that no cell has any more. As many must be made anew before
// the next sweep as are left, so each costs a part of it that does not grow.
func (e *Emulator) sweepClusters() {
	old := e.clusters
	e.clusters = interned[string]{}
	e.eachCell(func(c *cell) {
		if c.text >= firstCluster {
			c.text = uint32(firstCluster + e.clusters.place(old.values[c.text-firstCluster]))
		}
	})
	e.clusterLimit = max(1024, 2*len(e.clusters.values))
}

// setExtra gives the pen an underline color and a link.
func (e *Emulator) setExtra(x extra) {
	if x == (extra{}) {
		e.pen.extra = 0
		return
	}
	if len(e.extras.values) >= maxExtras {
		e.sweepExtras()
	}
	e.pen.extra = uint16(e.extras.place(x) + 1)
}

// sweepExtras drops those that no cell has any more. If there are nearly as many then,
// it drops all: no screen that makes sense has so many links.
func (e *Emulator) sweepExtras() {
	old := e.extras
	for _, keep := range []bool{true, false} {
		e.extras = interned[extra]{}
		move := func(c *cell) {
			switch {
			case !keep:
				c.extra = 0
			case c.extra != 0:
				c.extra = uint16(e.extras.place(old.values[c.extra-1]) + 1)
			}
		}
		e.eachCell(move)
		move(&e.pen)
		move(&e.saved[0].pen)
		move(&e.saved[1].pen)
		if len(e.extras.values) <= maxExtras/2 {
			return
		}
		old = e.extras
	}
}

func (e *Emulator) eachCell(do func(*cell)) {
	for _, lines := range e.lines {
		for _, l := range lines {
			do(&l.fill)
			for i := range l.cells {
				do(&l.cells[i])
			}
		}
	}
}

// asciiText saves an allocation for nearly every cell.
var asciiText = func() (t [del]string) {
	for i := range t {
		t[i] = string(rune(i))
	}
	return t
}()

// text returns what is in a cell.
func (e *Emulator) text(c cell) string {
	switch {
	case c.attr&tail != 0:
		return ""
	case c.text == 0:
		return " "
	case c.text < del:
		return asciiText[c.text]
	case c.text >= firstCluster:
		return e.clusters.values[c.text-firstCluster]
	}
	return string(rune(c.text))
}

// style returns how a cell looks.
func (e *Emulator) style(c cell) Style {
	s := Style{
		Fg: c.fg, Bg: c.bg,
		Bold: c.attr&bold != 0, Faint: c.attr&faint != 0, Italic: c.attr&italic != 0, Blink: c.attr&blink != 0,
		Reverse: c.attr&reverse != 0, Conceal: c.attr&conceal != 0, Strike: c.attr&strike != 0,
		Underline: UnderlineKind(c.attr >> underlineShift),
	}
	if c.extra != 0 {
		x := e.extras.values[c.extra-1]
		s.UnderlineColor, s.Link = x.underline, x.link
	}
	return s
}

// public returns the Cell.
func (e *Emulator) public(c cell) Cell {
	p := Cell{Text: e.text(c), Width: 1, Style: e.style(c)}
	switch {
	case c.attr&wide != 0:
		p.Width = 2
	case c.attr&tail != 0:
		p.Width = 0
	}
	return p
}
