package screen

// Options are those of an Emulator. The zero value is the default.
type Options struct {
	// Scrollback is how many lines are kept as text when they scroll off the top of the
	// normal screen. 0 means 1000; negative none.
	Scrollback int
}

const defaultScrollback = 1000

// Emulator has the picture that a program paints by what it prints. It is not safe for
// concurrent use. It has no goroutines, and answers nothing: see [Scanner].
type Emulator struct {
	parser  parser
	modal   modal
	size    Size
	lines   [2][]*line // of the normal screen, and of the alternate one once it was shown
	x, y    int
	wrap    bool // the last column was written to: the next character begins a line
	pen     cell // as what is printed looks
	saved   [2]savedCursor
	tabs    [maxSide/64 + 1]uint64
	partial [4]byte // of a rune
	pending uint8   // bytes in partial
	last    rune    // what REP repeats

	str      []byte // of the string that is being read
	title    string
	titles   []string // pushed by CSI 22 t
	clusters interned[string]
	extras   interned[extra]
	history  history

	clusterLimit int
	closed       bool
	faults       int
}

type savedCursor struct {
	x, y int
	wrap bool
	pen  cell
}

// New returns an Emulator with an empty screen. The size is clamped, opts may be nil.
func New(size Size, opts *Options) *Emulator {
	e := &Emulator{size: size.Clamp()}
	e.history.limit = defaultScrollback
	if opts != nil && opts.Scrollback != 0 {
		e.history.limit = max(opts.Scrollback, 0)
	}
	e.reset()
	return e
}

// reset is RIS. The title and the scrollback stay.
func (e *Emulator) reset() {
	e.modal.reset()
	e.modal.rows = e.size.Rows
	e.lines = [2][]*line{newLines(e.size.Rows)}
	e.clusters, e.extras = interned[string]{}, interned[extra]{}
	e.x, e.y, e.wrap, e.pen, e.last = 0, 0, false, cell{}, 0
	e.saved = [2]savedCursor{}
	e.resetTabs()
}

// Write takes what the program printed. It never fails and never blocks. After Close it
// does nothing.
func (e *Emulator) Write(p []byte) (n int, err error) {
	n = len(p) // Also after a fault.
	if e.closed {
		return n, nil
	}
	// What a program prints must not end the process of all other terminals.
	defer func() {
		if recover() != nil {
			e.faults++
			e.parser, e.pending, e.str = parser{}, 0, nil
			e.reset()
		}
	}()
	for rest := p; len(rest) > 0; {
		rest = rest[e.some(rest):]
	}
	return n, nil
}

// some takes at least one byte, and returns how many it took.
func (e *Emulator) some(p []byte) int {
	if e.parser.state == ground {
		b := p[0]
		switch {
		case e.pending > 0 || b >= 0x80:
			return e.utf8(p)
		case b >= ' ' && b < del:
			n := 1
			for n < len(p) && p[n] >= ' ' && p[n] < del {
				n++
			}
			e.ascii(p[:n])
			return n
		}
	}
	e.act(e.parser.next(p[0]), p[0])
	return 1
}

func (e *Emulator) act(act action, b byte) {
	switch act {
	case actControl:
		e.control(b)
	case actEscape:
		e.escape()
	case actCSI:
		e.csi()
	case actString:
		e.str = e.str[:0]
	case actData:
		if len(e.str) <= maxString {
			e.str = append(e.str, b)
		}
	case actStringEnd:
		e.command()
		if cap(e.str) > 256 {
			e.str = nil // Few strings are long: do not keep the room for one.
		}
	}
}

// Resize gives the screen another size, which is clamped. Lines are cut or become longer.
// If there are fewer, those below the cursor go first, then those at the top, which
// become scrollback. The scroll region ends, and tab stops are as at the start.
func (e *Emulator) Resize(size Size) {
	size = size.Clamp()
	if size == e.size || e.closed {
		return
	}
	for i, lines := range e.lines {
		if lines == nil {
			continue
		}
		if drop := len(lines) - size.Rows; drop > 0 {
			y := e.y
			if i != e.modal.screen() {
				y = e.saved[i].y
			}
			below := min(len(lines)-1-min(y, len(lines)-1), drop)
			lines = lines[:len(lines)-below]
			top := drop - below
			if i == 0 {
				for _, l := range lines[:top] {
					e.keep(l)
				}
			}
			if i == e.modal.screen() {
				e.y -= top
			}
			e.saved[i].y -= top
			lines = append([]*line(nil), lines[top:]...)
		} else {
			lines = append(lines[:len(lines):len(lines)], newLines(-drop)...)
		}
		if size.Cols != e.size.Cols {
			for _, l := range lines {
				l.resize(size.Cols)
			}
		}
		e.lines[i] = lines
	}
	e.size = size
	e.modal.resize(size.Rows)
	e.moveTo(e.x, e.y)
	for i := range e.saved {
		s := &e.saved[i]
		s.x, s.y, s.wrap = min(s.x, size.Cols-1), max(min(s.y, size.Rows-1), 0), false
	}
	e.resetTabs()
}

// Screen returns the picture as it is now. After Close it is empty.
func (e *Emulator) Screen() *Screen {
	s := &Screen{
		Size:      e.size,
		Cells:     e.cells(e.modal.screen()),
		Title:     e.title,
		Alternate: e.modal.Alternate,
		Modes:     e.modal.Modes,
		Cursor:    e.Cursor(),
		Pen:       e.style(e.pen),
		wrap:      e.wrap && !e.modal.AutoWrapOff,
	}
	if s.Alternate {
		saved := e.saved[0]
		s.normal = &Screen{
			Size: e.size, Cells: e.cells(0),
			Cursor: Cursor{Col: saved.x, Row: saved.y}, Pen: e.style(saved.pen),
		}
	}
	return s
}

// Cursor returns that of Screen, without making the picture.
func (e *Emulator) Cursor() Cursor {
	return Cursor{
		Col: e.x, Row: e.y, Visible: !e.modal.CursorHidden,
		Shape: e.modal.CursorShape, Blink: e.modal.CursorBlink,
	}
}

func (e *Emulator) cells(which int) [][]Cell {
	rows := make([][]Cell, e.size.Rows)
	all := make([]Cell, e.size.Rows*e.size.Cols)
	for y := range rows {
		row := all[y*e.size.Cols:][:e.size.Cols:e.size.Cols]
		rows[y] = row
		if e.closed {
			paintBlank(row)
			continue
		}
		l := e.lines[which][y]
		for x := range row {
			row[x] = e.public(l.at(x))
		}
	}
	return rows
}

func paintBlank(row []Cell) {
	for i := range row {
		row[i] = Cell{Text: " ", Width: 1}
	}
}

// Scrollback returns the text of the lines that scrolled off the top of the normal screen,
// the oldest first, without the blanks at their ends.
func (e *Emulator) Scrollback() []string { return e.history.all() }

// Faults is how often a fault of the Emulator itself was met: the screen was
// reset then. It is 0, or there is a bug to be reported.
func (e *Emulator) Faults() int { return e.faults }

// Close frees what the Emulator has. It may be called twice.
func (e *Emulator) Close() {
	if e.closed {
		return
	}
	*e = Emulator{size: e.size, closed: true, faults: e.faults}
}
