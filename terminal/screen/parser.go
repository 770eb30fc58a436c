package screen

// state is where in a sequence the parser is.
type state uint8

const (
	ground       state = iota // text and controls
	escape                    // behind ESC, and behind what is between it and its final byte
	csi                       // behind CSI
	csiIgnore                 // in one that makes no sense, until its final byte
	stringData                // in OSC, DCS, APC, PM, SOS, and the title of screen(1), ESC k
	stringEscape              // at an ESC in one of these: ST, or the start of something else
)

// action is what a byte led to.
type action uint8

const (
	actNone      action = iota
	actText             // a byte of text
	actControl          // a C0 control; within a sequence it counts as if it stood before it
	actEscape           // final and inter are those of an escape sequence
	actCSI              // and params and prefix, of a control sequence
	actString           // a string of a kind begins
	actData             // a byte of it
	actStringEnd        // it ends; one that is cut off does not
)

const maxParams = 32 // Those behind are dropped. xterm has 30.

// parser splits a stream into sequences, as a VT500 does, one byte at a time, with UTF-8
// instead of C1. It allocates nothing, keeps no strings, and copying it is taking a checkpoint.
type parser struct {
	state  state
	kind   byte // of a string: what followed ESC
	prefix byte // < = > ? of a CSI
	final  byte
	inter  [2]byte
	inters uint8
	count  uint8             // of params
	sub    uint32            // bit i: param i came behind a colon
	params [maxParams]uint16 // 0 if missing; too large ones are 65535
}

const (
	bel = 0x07
	so  = 0x0e
	si  = 0x0f
	can = 0x18
	sub = 0x1a
	esc = 0x1b
	del = 0x7f
)

func (p *parser) next(b byte) action {
	switch p.state {
	case ground:
		switch {
		case b == esc:
			p.enter()
		case b < ' ':
			return actControl
		case b != del:
			return actText
		}
		return actNone
	case stringData:
		switch {
		case b == esc:
			p.state = stringEscape
		case b == can, b == sub:
			p.state = ground
		case b == bel && p.kind == ']':
			p.state, p.final = ground, bel
			return actStringEnd
		case b >= ' ':
			return actData
		}
		return actNone
	case stringEscape:
		if b == '\\' {
			p.state, p.final = ground, b
			return actStringEnd
		}
		p.enter()
	}
	switch {
	case b == esc:
		p.enter()
		return actNone
	case b == can, b == sub:
		p.state = ground
		return actNone
	case b < ' ':
		return actControl
	case b >= del: // Not of a sequence. It goes on, as in xterm.
		return actNone
	case p.state == escape:
		return p.escape(b)
	}
	return p.control(b)
}

// enter begins a sequence.
func (p *parser) enter() {
	p.state, p.prefix, p.inters, p.inter = escape, 0, 0, [2]byte{}
}

func (p *parser) intermediate(b byte) {
	if int(p.inters) < len(p.inter) {
		p.inter[p.inters] = b
	}
	p.inters = min(p.inters+1, uint8(len(p.inter))+1)
}

func (p *parser) escape(b byte) action {
	if b < '0' {
		p.intermediate(b)
		return actNone
	}
	if p.inters == 0 {
		switch b {
		case '[':
			p.state, p.count, p.sub = csi, 0, 0
			return actNone
		case ']', 'P', '_', '^', 'X', 'k':
			p.state, p.kind = stringData, b
			return actString
		}
	}
	p.state, p.final = ground, b
	return actEscape
}

func (p *parser) control(b byte) action {
	switch {
	case b >= '@':
		ignore := p.state == csiIgnore || int(p.inters) > len(p.inter)
		p.state, p.final = ground, b
		if ignore {
			return actNone
		}
		p.count = min(p.count, maxParams)
		return actCSI
	case b < '0':
		p.intermediate(b)
	case p.inters > 0:
		p.state = csiIgnore
	case b >= '<':
		if p.count > 0 || p.prefix != 0 {
			p.state = csiIgnore
		}
		p.prefix = b
	default:
		p.digit(b)
	}
	return actNone
}

// digit takes a digit of a number, or what separates two.
func (p *parser) digit(b byte) {
	if p.count == 0 {
		p.count, p.params[0] = 1, 0
	}
	if b <= '9' {
		if p.count <= maxParams {
			n := &p.params[p.count-1]
			*n = uint16(min(uint32(*n)*10+uint32(b-'0'), 1<<16-1))
		}
		return
	}
	p.count = min(p.count+1, maxParams+1)
	if p.count <= maxParams {
		p.params[p.count-1] = 0
		if b == ':' {
			p.sub |= 1 << (p.count - 1)
		}
	}
}

// param returns a number, and the default where it is missing or 0.
func (p *parser) param(i, missing int) int {
	if i >= int(p.count) || p.params[i] == 0 {
		return missing
	}
	return int(p.params[i])
}

// is reports whether the sequence has the prefix and the intermediate byte; 0 is none.
func (p *parser) is(prefix, inter byte) bool {
	n := uint8(1)
	if inter == 0 {
		n = 0
	}
	return p.prefix == prefix && p.inters == n && p.inter[0] == inter
}
