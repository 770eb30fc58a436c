package screen

// modal keeps the Modes as sequences change them, for the Scanner and the Emulator.
type modal struct {
	Modes
	rows  int           // of the screen; 0 is unknown
	saved [2]savedModes // by DECSC, of the normal and the alternate screen
}

// savedModes are those that the cursor takes along.
type savedModes struct {
	saved            bool // at all
	origin, shiftOut bool
	lineDrawing      [2]bool
}

// screen is which of the two is shown.
func (m *modal) screen() int {
	if m.Alternate {
		return 1
	}
	return 0
}

func (m *modal) save() {
	m.saved[m.screen()] = savedModes{true, m.Origin, m.ShiftOut, m.LineDrawing}
}

func (m *modal) restore() {
	s := m.saved[m.screen()]
	m.Origin, m.ShiftOut, m.LineDrawing = s.origin, s.shiftOut, s.lineDrawing
}

func (m *modal) reset() { *m = modal{rows: m.rows} }

// resize forgets the scroll region, as terminals do.
func (m *modal) resize(rows int) {
	m.rows, m.Top, m.Bottom = rows, 0, 0
}

// softReset is DECSTR.
func (m *modal) softReset() {
	m.CursorHidden, m.Insert, m.Origin, m.AutoWrapOff = false, false, false, false
	m.AppCursor, m.AppKeypad = false, false
	m.Top, m.Bottom = 0, 0
	m.LineDrawing, m.ShiftOut = [2]bool{}, false
	m.saved[m.screen()] = savedModes{}
}

// control follows SO and SI.
func (m *modal) control(b byte) {
	switch b {
	case so:
		m.ShiftOut = true
	case si:
		m.ShiftOut = false
	}
}

// escape follows an escape sequence.
func (m *modal) escape(p *parser) {
	if p.inters == 1 {
		if g := p.inter[0] - '('; g < 2 { // Of '(' and ')'.
			m.LineDrawing[g] = p.final == '0' || p.final == '2'
		} else if p.inter[0] == '#' && p.final == '8' {
			m.Top, m.Bottom, m.Origin = 0, 0, false // DECALN
		}
		return
	}
	if p.inters > 0 {
		return
	}
	switch p.final {
	case '7':
		m.save()
	case '8':
		m.restore()
	case '=':
		m.AppKeypad = true
	case '>':
		m.AppKeypad = false
	case 'c':
		m.reset()
	}
}

// control sequences that set modes.
func (m *modal) csi(p *parser) {
	set := p.final == 'h'
	switch {
	case (set || p.final == 'l') && p.is('?', 0):
		for i := range p.count {
			m.private(int(p.params[i]), set)
		}
	case (set || p.final == 'l') && p.is(0, 0):
		for i := range p.count {
			m.ansi(int(p.params[i]), set)
		}
	case p.final == 'r' && p.is(0, 0):
		m.region(p.param(0, 1), p.param(1, 1<<16-1))
	case p.final == 's' && p.is(0, 0):
		m.save()
	case p.final == 'u' && p.is(0, 0):
		m.restore()
	case p.final == 'p' && p.is(0, '!'):
		m.softReset()
	case p.final == 'q' && p.is(0, ' '):
		m.cursor(p.param(0, 0))
	case p.final == 'm' && p.is('>', 0):
		if n := p.param(0, 0); n == 4 || n == 0 {
			m.ModifyKeys = uint8(min(p.param(1, 0), 2))
		}
	case p.final == 'n' && p.is('>', 0):
		if p.param(0, 0) == 4 {
			m.ModifyKeys = 0
		}
	}
}

func (m *modal) ansi(n int, set bool) {
	switch n {
	case 4:
		m.Insert = set
	case 20:
		m.NewLine = set
	}
}

// region is DECSTBM. One that makes no sense changes nothing.
func (m *modal) region(top, bottom int) {
	if m.rows > 0 {
		bottom = min(bottom, m.rows)
	}
	if top >= bottom {
		return
	}
	if bottom == m.rows || bottom == 1<<16-1 {
		bottom = 0
	}
	if top == 1 {
		top = 0
	}
	m.Top, m.Bottom = uint16(top), uint16(bottom)
}

// cursor is DECSCUSR.
func (m *modal) cursor(n int) {
	if n > 6 {
		return
	}
	if n == 0 {
		m.CursorShape, m.CursorBlink = CursorBlock, false
		return
	}
	m.CursorShape, m.CursorBlink = CursorShape((n-1)/2), n%2 == 1
}

// private is a DEC mode, or one of xterm.
func (m *modal) private(n int, set bool) {
	if f := m.flag(n); f != nil {
		*f = set
		return
	}
	switch n {
	case 7:
		m.AutoWrapOff = !set
	case 12:
		m.CursorBlink = set
	case 25:
		m.CursorHidden = !set
	case 1007:
		m.AltScrollOff = !set
	case 9, 1000, 1002, 1003:
		m.Mouse = MouseOff
		if set {
			m.Mouse = mouseMode(n)
		}
	case 47, 1047:
		m.Alternate = set
	case 1048:
		if set {
			m.save()
		} else {
			m.restore()
		}
	case 1049:
		if set && !m.Alternate {
			m.save()
		}
		m.Alternate = set
		if !set && m.saved[0].saved { // Also if the normal screen was shown already.
			m.restore()
		}
	}
}

// flag is the field of a mode that is one bit, and set where it is true.
func (m *modal) flag(n int) *bool {
	switch n {
	case 1:
		return &m.AppCursor
	case 5:
		return &m.ReverseScreen
	case 6:
		return &m.Origin
	case 66:
		return &m.AppKeypad
	case 1004:
		return &m.Focus
	case 1006:
		return &m.MouseSGR
	case 2004:
		return &m.BracketedPaste
	case 2026:
		return &m.SyncOutput
	}
	return nil
}

func mouseMode(n int) MouseMode {
	switch n {
	case 9:
		return MouseX10
	case 1000:
		return MouseClick
	case 1002:
		return MouseDrag
	}
	return MouseMotion
}

// report is what DECRPM says of a mode: 0 unknown, 1 set, 2 reset.
func (m *modal) report(n int, private bool) byte {
	var set bool
	f := m.flag(n)
	switch {
	case !private && n == 4:
		set = m.Insert
	case !private && n == 20:
		set = m.NewLine
	case !private:
		return 0
	case f != nil:
		set = *f
	default:
		switch n {
		case 7:
			set = !m.AutoWrapOff
		case 12:
			set = m.CursorBlink
		case 25:
			set = !m.CursorHidden
		case 1007:
			set = !m.AltScrollOff
		case 9, 1000, 1002, 1003:
			set = m.Mouse == mouseMode(n)
		case 47, 1047, 1049:
			set = m.Alternate
		default:
			return 0
		}
	}
	if set {
		return 1
	}
	return 2
}
