package screen

import (
	"fmt"
	"strconv"
)

// Color is one of the terminal's own choice, of the palette of 256, or of 24 bits. The
// zero value is the terminal's default. Colors can be compared.
type Color uint32

// The kind is in the highest byte.
const (
	colorIndexed Color = 1 << 24
	colorRGB     Color = 2 << 24
	colorKind    Color = 0xff << 24
)

// Indexed is a color of the palette: the 8 of ANSI, 8 bright ones, a cube of 216, and
// 24 grays.
func Indexed(n uint8) Color { return colorIndexed | Color(n) }

// RGB is a color of 24 bits.
func RGB(r, g, b uint8) Color { return colorRGB | Color(r)<<16 | Color(g)<<8 | Color(b) }

// IsDefault reports whether the terminal chooses the color.
func (c Color) IsDefault() bool { return c&colorKind == 0 }

// Index returns the place in the palette of a color that Indexed made.
func (c Color) Index() (n uint8, ok bool) { return uint8(c), c&colorKind == colorIndexed }

// RGB returns the parts of a color of 24 bits, or of the palette as xterm has it. The
// default color has none.
func (c Color) RGB() (r, g, b uint8, ok bool) {
	switch c & colorKind {
	case colorIndexed:
		c = palette(uint8(c))
	case colorRGB:
	default:
		return 0, 0, 0, false
	}
	return uint8(c >> 16), uint8(c >> 8), uint8(c), true
}

// String is as MarshalText, with "default" for the default.
func (c Color) String() string {
	switch c & colorKind {
	case colorIndexed:
		return strconv.Itoa(int(uint8(c)))
	case colorRGB:
		return fmt.Sprintf("#%06x", uint32(c)&0xffffff)
	}
	return "default"
}

// MarshalText gives "" for the default, "4" for an indexed color, "#rrggbb" for RGB.
func (c Color) MarshalText() ([]byte, error) {
	if c.IsDefault() {
		return nil, nil
	}
	return []byte(c.String()), nil
}

// UnmarshalText reads what MarshalText writes.
func (c *Color) UnmarshalText(text []byte) error {
	s := string(text)
	switch {
	case s == "":
		*c = 0
		return nil
	case len(s) == len("#rrggbb") && s[0] == '#':
		if n, err := strconv.ParseUint(s[1:], 16, 24); err == nil {
			*c = colorRGB | Color(n)
			return nil
		}
	default:
		if n, err := strconv.ParseUint(s, 10, 8); err == nil {
			*c = Indexed(uint8(n))
			return nil
		}
	}
	return fmt.Errorf("screen: a color is empty, a number to 255 or #rrggbb, not %q", s)
}

// ansiColors are xterm's first 16.
var ansiColors = [16]Color{
	0x000000, 0xcd0000, 0x00cd00, 0xcdcd00, 0x0000ee, 0xcd00cd, 0x00cdcd, 0xe5e5e5,
	0x7f7f7f, 0xff0000, 0x00ff00, 0xffff00, 0x5c5cff, 0xff00ff, 0x00ffff, 0xffffff,
}

// palette returns xterm's color n as 24 bits.
func palette(n uint8) Color {
	switch {
	case n < 16:
		return ansiColors[n]
	case n < 232:
		level := func(i uint8) uint8 {
			if i == 0 {
				return 0
			}
			return 55 + 40*i
		}
		n -= 16
		return RGB(level(n/36), level(n/6%6), level(n%6)) &^ colorKind
	}
	gray := 8 + 10*(n-232)
	return RGB(gray, gray, gray) &^ colorKind
}

// UnderlineKind is the form of an underline. The zero value is none.
type UnderlineKind uint8

// The numbers are those of SGR 4:n.
const (
	UnderlineNone UnderlineKind = iota
	UnderlineSingle
	UnderlineDouble
	UnderlineCurly
	UnderlineDotted
	UnderlineDashed
)

// Style is how a cell looks besides its text. Styles can be compared; the zero value is
// plain text.
type Style struct {
	Fg, Bg         Color
	UnderlineColor Color // the default: that of the text

	Bold, Faint, Italic, Blink, Reverse, Conceal, Strike bool

	Underline UnderlineKind
	Link      string // where a hyperlink (OSC 8) leads to; it is the program's word, do not trust it
}

// Cell is one column of a line.
type Cell struct {
	Text  string // a character with its marks, or a space; nothing in the right half of a wide one
	Width int    // 1, or 2 for the left half of a wide character and 0 for its right half
	Style Style
}
