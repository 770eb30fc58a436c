package screen

// sgr changes the pen.
func (e *Emulator) sgr() {
	p := &e.parser
	if p.count == 0 {
		e.look(0)
	}
	for i := 0; i < int(p.count); {
		n := 1 // with its subparameters
		for i+n < int(p.count) && p.sub&(1<<(i+n)) != 0 {
			n++
		}
		switch code := p.params[i]; {
		case code == 38 || code == 48 || code == 58:
			i += e.color(code, i, n)
			continue
		case code == 4 && n > 1:
			e.underline(min(p.params[i+1], uint16(UnderlineDashed)))
		case n == 1:
			e.look(code)
		}
		i += n
	}
	e.pen.text, e.pen.attr = 0, e.pen.attr&looks
}

func (e *Emulator) underline(kind uint16) {
	e.pen.attr = e.pen.attr&(1<<underlineShift-1) | kind<<underlineShift
}

// look is one of the codes without parameters of its own.
func (e *Emulator) look(code uint16) {
	pen := &e.pen
	on := [...]uint16{1: bold, 2: faint, 3: italic, 5: blink, 6: blink, 7: reverse, 8: conceal, 9: strike}
	off := [...]uint16{2: bold | faint, 3: italic, 5: blink, 7: reverse, 8: conceal, 9: strike}
	switch {
	case code == 0:
		link := e.extra().link
		*pen = cell{}
		e.setExtra(extra{link: link}) // Links end by OSC 8 only.
	case code == 4:
		e.underline(uint16(UnderlineSingle))
	case code == 21:
		e.underline(uint16(UnderlineDouble))
	case code == 24:
		e.underline(0)
	case code < uint16(len(on)):
		pen.attr |= on[code]
	case code >= 20 && code-20 < uint16(len(off)):
		pen.attr &^= off[code-20]
	case code >= 30 && code < 38:
		pen.fg = Indexed(uint8(code - 30))
	case code == 39:
		pen.fg = 0
	case code >= 40 && code < 48:
		pen.bg = Indexed(uint8(code - 40))
	case code == 49:
		pen.bg = 0
	case code == 59:
		e.setExtra(extra{link: e.extra().link})
	case code >= 90 && code < 98:
		pen.fg = Indexed(uint8(code - 90 + 8))
	case code >= 100 && code < 108:
		pen.bg = Indexed(uint8(code - 100 + 8))
	}
}

func (e *Emulator) extra() extra {
	if e.pen.extra == 0 {
		return extra{}
	}
	return e.extras.values[e.pen.extra-1]
}

// color takes 38, 48 or 58 with what follows: 5;n and 2;r;g;b, or with colons 5:n,
// 2:r:g:b and 2:space:r:g:b. It returns how many parameters it took; n are joined by colons.
func (e *Emulator) color(code uint16, i, n int) int {
	p := &e.parser
	args, took := p.params[i+1:i+n], n
	if n == 1 {
		args = p.params[i+1 : p.count]
		took = 1 + min(len(args), 1)
		if len(args) > 0 && args[0] == 2 {
			took = 1 + min(len(args), 4)
		} else if len(args) > 0 && args[0] == 5 {
			took = 1 + min(len(args), 2)
		}
		args = args[:took-1]
	}
	var c Color
	switch {
	case len(args) >= 2 && args[0] == 5:
		c = Indexed(uint8(min(args[1], 255)))
	case len(args) >= 4 && args[0] == 2:
		rgb := args[1:4]
		if len(args) > 4 {
			rgb = args[2:5]
		}
		c = RGB(uint8(min(rgb[0], 255)), uint8(min(rgb[1], 255)), uint8(min(rgb[2], 255)))
	default:
		return took
	}
	switch code {
	case 38:
		e.pen.fg = c
	case 48:
		e.pen.bg = c
	case 58:
		e.setExtra(extra{underline: c, link: e.extra().link})
	}
	return took
}
