package screen

// line is the one that the cursor is in.
func (e *Emulator) line() *line { return e.shown()[e.y] }

// shown are the lines of the screen that is shown.
func (e *Emulator) shown() []*line { return e.lines[e.modal.screen()] }

// blank is what is left where something was erased: only the background of the pen.
func (e *Emulator) blank() cell { return cell{bg: e.pen.bg} }

// top and bottom are the first and the last row of the scroll region.
func (e *Emulator) top() int { return max(int(e.modal.Top)-1, 0) }

func (e *Emulator) bottom() int {
	if e.modal.Bottom == 0 {
		return e.size.Rows - 1
	}
	return int(e.modal.Bottom) - 1
}

// moveTo puts the cursor into a cell, or the nearest that there is.
func (e *Emulator) moveTo(x, y int) {
	e.x = max(min(x, e.size.Cols-1), 0)
	e.y = max(min(y, e.size.Rows-1), 0)
	e.wrap = false
}

// moveRow is moveTo for a row that counts from the scroll region in origin mode.
func (e *Emulator) moveRow(x, y int) {
	if e.modal.Origin {
		y = min(y+e.top(), e.bottom())
	}
	e.moveTo(x, y)
}

func (e *Emulator) up(n int) {
	limit := 0
	if e.y >= e.top() {
		limit = e.top()
	}
	e.moveTo(e.x, max(e.y-n, limit))
}

func (e *Emulator) down(n int) {
	limit := e.size.Rows - 1
	if e.y <= e.bottom() {
		limit = e.bottom()
	}
	e.moveTo(e.x, min(e.y+n, limit))
}

// index moves down, and scrolls at the end of the region.
func (e *Emulator) index() {
	e.wrap = false
	switch {
	case e.y == e.bottom():
		e.scrollUp(e.top(), 1, true)
	case e.y < e.size.Rows-1:
		e.y++
	}
}

func (e *Emulator) reverseIndex() {
	e.wrap = false
	switch {
	case e.y == e.top():
		e.scrollDown(e.y, 1)
	case e.y > 0:
		e.y--
	}
}

// scrollUp scrolls the rows from the given one to the end of the region. Those that leave
// the top of the normal screen are kept, if that is wanted.
func (e *Emulator) scrollUp(from, n int, keep bool) {
	rows := e.shown()[from : e.bottom()+1]
	n = min(n, len(rows))
	for _, l := range rows[:n] {
		if keep && from == 0 && !e.modal.Alternate {
			e.keep(l)
		}
		l.set(e.blank())
	}
	rotate(rows, n)
}

func (e *Emulator) scrollDown(from, n int) {
	rows := e.shown()[from : e.bottom()+1]
	n = min(n, len(rows))
	for _, l := range rows[len(rows)-n:] {
		l.set(e.blank())
	}
	rotate(rows, len(rows)-n)
}

// control does what a C0 control says.
func (e *Emulator) control(b byte) {
	e.modal.control(b)
	switch b {
	case '\b':
		e.moveTo(e.x-1, e.y)
	case '\t':
		e.tab(1)
	case '\n', '\v', '\f':
		e.index()
		if e.modal.NewLine {
			e.x = 0
		}
	case '\r':
		e.moveTo(0, e.y)
	}
}

// escape does what an escape sequence says.
func (e *Emulator) escape() {
	p := &e.parser
	e.modal.escape(p)
	switch {
	case p.inters == 1 && p.inter[0] == '#' && p.final == '8':
		for _, l := range e.shown() {
			l.set(cell{text: 'E'})
		}
		e.moveTo(0, 0)
		return
	case p.inters > 0:
		return
	}
	switch p.final {
	case '7':
		e.save()
	case '8':
		e.restore()
	case 'D':
		e.index()
	case 'E':
		e.x = 0
		e.index()
	case 'H':
		e.tabs[e.x/64] |= 1 << (e.x % 64)
	case 'M':
		e.reverseIndex()
	case 'c':
		e.reset()
	}
}

func (e *Emulator) save() {
	e.saved[e.modal.screen()] = savedCursor{e.x, e.y, e.wrap, e.pen}
}

func (e *Emulator) restore() {
	s := e.saved[e.modal.screen()]
	e.moveTo(s.x, s.y)
	e.wrap, e.pen = s.wrap, s.pen
}

func (e *Emulator) resetTabs() {
	e.tabs = [len(e.tabs)]uint64{}
	for i := range e.tabs {
		e.tabs[i] = 0x0101010101010101
	}
}

// tab moves to the next stop, or the last column. A full line stays one.
func (e *Emulator) tab(n int) {
	for ; n > 0 && e.x < e.size.Cols-1; n-- {
		for e.x++; e.x < e.size.Cols-1 && e.tabs[e.x/64]&(1<<(e.x%64)) == 0; e.x++ {
		}
	}
}

func (e *Emulator) backTab(n int) {
	for e.wrap = false; n > 0 && e.x > 0; n-- {
		for e.x--; e.x > 0 && e.tabs[e.x/64]&(1<<(e.x%64)) == 0; e.x-- {
		}
	}
}

func (e *Emulator) clearTabs(which int) {
	switch which {
	case 0:
		e.tabs[e.x/64] &^= 1 << (e.x % 64)
	case 3:
		e.tabs = [len(e.tabs)]uint64{}
	}
}
