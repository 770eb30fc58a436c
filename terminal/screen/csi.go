package screen

// csi does what a control sequence says. Its numbers are at most 65535, and everything
// that takes one stops at the edges of the screen.
func (e *Emulator) csi() {
	p := &e.parser
	if _, asks := p.asks(); asks {
		return
	}
	switch {
	case p.is('?', 0):
		e.private()
		return
	case !p.is(0, 0):
		e.modal.csi(p)
		if p.is(0, '!') && p.final == 'p' {
			e.pen = cell{}
			e.saved[e.modal.screen()] = savedCursor{}
		}
		return
	}
	n := p.param(0, 1)
	switch p.final {
	case 'A':
		e.up(n)
	case 'B':
		e.down(n)
	case 'C', 'a':
		e.moveTo(e.x+n, e.y)
	case 'D':
		e.moveTo(e.x-n, e.y)
	case 'E':
		e.down(n)
		e.x = 0
	case 'F':
		e.up(n)
		e.x = 0
	case 'G', '`':
		e.moveTo(n-1, e.y)
	case 'H', 'f':
		e.moveRow(p.param(1, 1)-1, n-1)
	case 'd':
		e.moveRow(e.x, n-1)
	case 'e':
		e.moveTo(e.x, e.y+n)
	case 'I':
		e.tab(n)
	case 'Z':
		e.backTab(n)
	case 'g':
		e.clearTabs(p.param(0, 0))
	case 'b':
		e.repeat(n)
	case 'm':
		e.sgr()
	case 'r':
		e.modal.csi(p)
		if n < min(p.param(1, e.size.Rows), e.size.Rows) {
			e.moveRow(0, 0)
		}
	case 's':
		e.modal.csi(p)
		e.save()
	case 'u':
		e.modal.csi(p)
		e.restore()
	case 't':
		e.window()
	case 'h', 'l':
		e.modal.csi(p)
	default:
		e.edit(n)
	}
}

// edit does those that change cells.
func (e *Emulator) edit(n int) {
	p := &e.parser
	switch p.final {
	case 'J':
		e.eraseScreen(p.param(0, 0))
	case 'K':
		e.eraseLine(p.param(0, 0))
	case 'X':
		e.wrap = false
		fill(e.line().row(e.size.Cols), e.x, min(e.x+n, e.size.Cols), e.blank())
	case '@':
		e.wrap = false
		insert(e.line().row(e.size.Cols), e.x, n, e.blank())
	case 'P':
		e.wrap = false
		remove(e.line().row(e.size.Cols), e.x, n, e.blank())
	case 'L', 'M':
		if e.y < e.top() || e.y > e.bottom() {
			return
		}
		if p.final == 'L' {
			e.scrollDown(e.y, n)
		} else {
			e.scrollUp(e.y, n, false)
		}
		e.moveTo(0, e.y)
	case 'S':
		e.scrollUp(e.top(), n, true)
	case 'T', '^':
		if p.count <= 1 { // With more it is about the mouse.
			e.scrollDown(e.top(), n)
		}
	}
}

func (e *Emulator) eraseScreen(which int) {
	lines := e.shown()
	switch which {
	case 0:
		e.eraseLine(0)
		lines = lines[e.y+1:]
	case 1:
		e.eraseLine(1)
		lines = lines[:e.y]
	case 2:
		e.wrap = false
	case 3:
		e.history.clear()
		return
	default:
		return
	}
	for _, l := range lines {
		l.set(e.blank())
	}
}

func (e *Emulator) eraseLine(which int) {
	e.wrap = false
	from, to := 0, e.size.Cols
	switch which {
	case 0:
		from = e.x
	case 1:
		to = e.x + 1
	case 2:
	default:
		return
	}
	if to-from == e.size.Cols {
		e.line().set(e.blank())
		return
	}
	fill(e.line().row(e.size.Cols), from, to, e.blank())
}

// private does those with a question mark.
func (e *Emulator) private() {
	p := &e.parser
	switch p.final {
	case 'h', 'l':
		for i := range p.count {
			e.mode(int(p.params[i]), p.final == 'h')
		}
	case 'J':
		e.eraseScreen(p.param(0, 0)) // No cell is protected.
	case 'K':
		e.eraseLine(p.param(0, 0))
	}
}

func (e *Emulator) mode(n int, set bool) {
	before := e.modal.Alternate
	switch {
	case n == 1048 && set, n == 1049 && set && !before:
		e.save()
	case n == 1048:
		e.restore()
	}
	e.modal.private(n, set)
	switch {
	case n == 6:
		e.moveRow(0, 0)
	case n == 7:
		e.wrap = false
	case n == 1049 && !set && e.modal.saved[0].saved:
		e.restore()
	}
	if e.modal.Alternate == before {
		return
	}
	if n != 47 {
		e.lines[1] = nil // Nobody sees it again.
	}
	if set && e.lines[1] == nil {
		e.lines[1] = newLines(e.size.Rows)
		for _, l := range e.lines[1] {
			l.set(e.blank())
		}
	}
}
