package screen

import "slices"

// line is a row of cells. One in which all are the same has no cells: scrolling and
// erasing is done in a moment, and a screen that shows little is small.
type line struct {
	cells   []cell // room for a row, and its content unless uniform
	fill    cell   // all cells, if uniform
	uniform bool
}

// set makes all cells the same.
func (l *line) set(c cell) { l.fill, l.uniform = c, true }

// row returns the cells, to be changed.
func (l *line) row(cols int) []cell {
	if l.uniform {
		l.uniform = false
		if cap(l.cells) < cols {
			l.cells = make([]cell, cols)
		}
		l.cells = l.cells[:cols]
		paint(l.cells, l.fill)
	}
	return l.cells
}

// at returns a cell.
func (l *line) at(x int) cell {
	if l.uniform {
		return l.fill
	}
	return l.cells[x]
}

// resize cuts the line or makes it longer.
func (l *line) resize(cols int) {
	if l.uniform {
		l.cells = nil
		return
	}
	if cols < len(l.cells) {
		split(l.cells, cols)
	}
	cells := make([]cell, cols)
	copy(cells, l.cells)
	l.cells = cells
}

func newLines(rows int) []*line {
	all := make([]line, rows)
	lines := make([]*line, rows)
	for i := range lines {
		all[i].uniform = true
		lines[i] = &all[i]
	}
	return lines
}

// split blanks a wide character that stands on both sides of a column's left edge.
func split(row []cell, x int) {
	if x > 0 && x < len(row) && row[x].attr&tail != 0 {
		row[x-1] = cell{bg: row[x-1].bg}
		row[x] = cell{bg: row[x].bg}
	}
}

// fill sets cells, and blanks the wide characters of which only a half is among them.
func fill(row []cell, from, to int, c cell) {
	split(row, from)
	split(row, to)
	paint(row[from:to], c)
}

func paint(cells []cell, c cell) {
	for i := range cells {
		cells[i] = c
	}
}

// insert moves the cells from x on to the right by n.
func insert(row []cell, x, n int, c cell) {
	n = min(n, len(row)-x)
	split(row, x)
	split(row, len(row)-n)
	copy(row[x+n:], row[x:])
	paint(row[x:x+n], c)
}

// remove moves the cells behind x+n to the left by n.
func remove(row []cell, x, n int, c cell) {
	n = min(n, len(row)-x)
	split(row, x)
	split(row, x+n)
	copy(row[x:], row[x+n:])
	paint(row[len(row)-n:], c)
}

// rotate moves the first n lines behind the others.
func rotate(lines []*line, n int) {
	if n == 1 { // By far the most frequent: a line feed.
		first := lines[0]
		copy(lines, lines[1:])
		lines[len(lines)-1] = first
		return
	}
	slices.Reverse(lines[:n])
	slices.Reverse(lines[n:])
	slices.Reverse(lines)
}
