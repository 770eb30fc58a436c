package picture

// box is a rectangle in a cell, in pixels from its top left.
type box struct {
	x, y, w, h int
	alpha      uint8
}

// arms has four letters for each of U+2500 to U+257F: what goes left, up, right and down from the
// middle. A line is light, heavy or double. Dots are characters that are no such lines.
const arms = "" +
	"l l h h  l l h h................................  ll  hl  lh  hh" + // 2500
	"l  lh  ll  hh  h ll  lh  hl  hh ll  hl  lh  hh   lll lhl hll llh" + // 2510
	" hlh hhl lhh hhhll lhl llh lll hlh hhh lhl hhh hl llh lll hlh hl" + // 2520
	"l lhh lhl hhh hhlll hll llh hlh lhl hhl lhh hhh llllhlllllhlhlhl" + // 2530
	"lhlllllhlhlhhhlllhhlhllhllhhhhhlhlhhhhlhlhhhhhhh................" + // 2540
	"d d  d d  dl  ld  ddd  ll  dd  d ld  dl  dd dl  ld  dd   ldl dld" + // 2550
	" ddddl lld ddd dd dll ldd dddld ldl ddd dldlldlddddd............" + // 2560
	"................l    l    l    lh    h    h    hl h  l hh l  h l" // 2570

// shapes returns the boxes of a character that is made of lines or blocks, which have to
// meet those in the cells beside it; nil for all others. What a box erases has no alpha.
func shapes(r rune, w, h int) []box {
	switch {
	case r >= 0x2500 && r < 0x2580:
		return lines(r, w, h)
	case r >= 0x2580 && r < 0x25a0:
		return blocks(r, w, h)
	case r > 0x2800 && r < 0x2900:
		return braille(r, w, h)
	}
	return nil
}

// lines are the box drawings.
func lines(r rune, w, h int) []box {
	if dashes := map[rune]int{0x2504: 3, 0x2508: 4, 0x254c: 2}[r&^3]; dashes > 0 && r < 0x2550 {
		return dashed(r, dashes, w, h)
	}
	if r >= 0x256d && r <= 0x2570 {
		return arc(r, w, h)
	}
	arm := arms[(r-0x2500)*4:][:4]
	if arm == "...." {
		return nil
	}
	t := stroke(h)
	x, y := w/2-t/2, h/2-t/2 // The top left of the middle.
	// reach is a box from the middle to the edge, with a line of a width of 1 or 3 strokes.
	// It begins a number of strokes before the middle.
	reach := func(to, wide, before int, alpha uint8) box {
		side, back := (wide-1)/2*t, before*t
		switch to {
		case 0:
			return box{0, y - side, x + t + back, wide * t, alpha}
		case 1:
			return box{x - side, 0, wide * t, y + t + back, alpha}
		case 2:
			return box{x - back, y - side, w - x + back, wide * t, alpha}
		}
		return box{x - side, y - back, wide * t, h - y + back, alpha}
	}
	var list []box
	across := func(i int) bool { return arm[(i+1)%4] == 'd' || arm[(i+3)%4] == 'd' }
	for i := range 4 { // First the doubles, as wide lines with the middle taken out.
		if arm[i] == 'd' {
			before := 0
			if across(i) {
				before = 1
			}
			list = append(list, reach(i, 3, before, 255))
		}
	}
	for i := range 4 {
		if arm[i] == 'd' {
			list = append(list, reach(i, 1, 0, 0))
		}
	}
	for i := range 4 {
		before := 0
		if across(i) && arm[(i+2)%4] == ' ' {
			before = -2 // It ends at the nearer one of a double line.
			if arm[(i+1)%4] != 'd' || arm[(i+3)%4] != 'd' {
				before = 1 // A corner: it goes on to the farther one.
			}
		}
		switch arm[i] {
		case 'l':
			list = append(list, reach(i, 1, before, 255))
		case 'h':
			list = append(list, reach(i, 3, 1, 255))
		}
	}
	return list
}

func stroke(h int) int { return max(h/18, 1) }

// dashed lines alternate: horizontal light, horizontal heavy, vertical light, vertical heavy.
func dashed(r rune, n, w, h int) []box {
	t := stroke(h)
	thick := t
	if r&1 == 1 {
		thick = 3 * t
	}
	var list []box
	for i := range n {
		if r&2 == 0 {
			from, to := w*i/n, w*(i+1)/n
			list = append(list, box{from, h/2 - thick/2, max(to-from-2*t, 1), thick, 255})
		} else {
			from, to := h*i/n, h*(i+1)/n
			list = append(list, box{w/2 - thick/2, from, thick, max(to-from-2*t, 1), 255})
		}
	}
	return list
}

// arc is a corner without its edge.
func arc(r rune, w, h int) []box {
	t := stroke(h)
	x, y := w/2-t/2, h/2-t/2
	dx, dy := 1, 1 // To where it opens.
	if r == 0x256e || r == 0x256f {
		dx = -1
	}
	if r == 0x256f || r == 0x2570 {
		dy = -1
	}
	list := []box{{x + dx*t, y + dy*t, t, t, 255}}
	if dx > 0 {
		list = append(list, box{x + 2*t, y, w - x - 2*t, t, 255})
	} else {
		list = append(list, box{0, y, x - t, t, 255})
	}
	if dy > 0 {
		list = append(list, box{x, y + 2*t, t, h - y - 2*t, 255})
	} else {
		list = append(list, box{x, 0, t, y - t, 255})
	}
	return list
}

// blocks are the block elements.
func blocks(r rune, w, h int) []box {
	const upperLeft, upperRight, lowerLeft, lowerRight = 1, 2, 4, 8
	switch {
	case r == 0x2580:
		return []box{{0, 0, w, h / 2, 255}}
	case r <= 0x2588: // Eighths from below.
		part := h * int(r-0x2580) / 8
		return []box{{0, h - part, w, part, 255}}
	case r <= 0x258f: // Eighths from the left.
		return []box{{0, 0, max(w*int(0x2590-r)/8, 1), h, 255}}
	case r == 0x2590:
		return []box{{w / 2, 0, w - w/2, h, 255}}
	case r <= 0x2593:
		return []box{{0, 0, w, h, uint8(64 * (r - 0x2590))}}
	case r == 0x2594:
		return []box{{0, 0, w, max(h/8, 1), 255}}
	case r == 0x2595:
		return []box{{w - max(w/8, 1), 0, max(w/8, 1), h, 255}}
	}
	quarters := [...]int{
		lowerLeft, lowerRight, upperLeft, upperLeft | lowerLeft | lowerRight, upperLeft | lowerRight,
		upperLeft | upperRight | lowerLeft, upperLeft | upperRight | lowerRight, upperRight,
		upperRight | lowerLeft, upperRight | lowerLeft | lowerRight,
	}[r-0x2596]
	var list []box
	for i := range 4 {
		if quarters&(1<<i) != 0 {
			x, y := i%2*(w/2), i/2*(h/2)
			list = append(list, box{x, y, w/2 + i%2*(w%2), h/2 + i/2*(h%2), 255})
		}
	}
	return list
}

// braille has dots 1 to 3 and 7 on the left from above, and the others on the right.
func braille(r rune, w, h int) []box {
	size := max(w/5, 1)
	var list []box
	for i, dot := range [8][2]int{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}} {
		if r&(1<<i) != 0 {
			list = append(list, box{(2*dot[0]+1)*w/4 - size/2, (2*dot[1]+1)*h/8 - size/2, size, size, 255})
		}
	}
	return list
}
