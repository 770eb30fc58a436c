package picture

import (
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"io"
	"sync"
	"unicode/utf8"

	"codeberg.org/go-fonts/dejavu/dejavusansmono"
	"codeberg.org/go-fonts/dejavu/dejavusansmonobold"
	"codeberg.org/go-fonts/dejavu/dejavusansmonooblique"
	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// maxPixels bounds a picture: a larger screen is drawn smaller.
const maxPixels = 20 << 20

// fonts are parsed when the first picture is drawn.
var fonts = sync.OnceValues(func() (list [3]*opentype.Font, err error) {
	for i, ttf := range [][]byte{dejavusansmono.TTF, dejavusansmonobold.TTF, dejavusansmonooblique.TTF} {
		if list[i], err = opentype.Parse(ttf); err != nil {
			return list, err
		}
	}
	return list, nil
})

// PNG writes a picture of the screen, with the cursor, in DejaVu Sans Mono. Characters
// that the font does not have, as those of East Asia and emoji, are boxes of
// their width. A cell is 18 by 36 pixels, and less on a screen of more than some 30,000 cells. The error
// is that of w.
func PNG(w io.Writer, of *screen.Screen) error {
	p, err := newPainter(drawing{of})
	if err != nil {
		return err
	}
	for row := range of.Cells {
		for col := range of.Cells[row] {
			p.background(col, row)
		}
		for col := range of.Cells[row] {
			p.cell(col, row)
		}
	}
	return (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(w, p.img)
}

type painter struct {
	s      drawing
	img    *image.RGBA
	w, h   int // of a cell
	margin int
	fonts  [3]*opentype.Font
	faces  [3]font.Face
	glyphs map[glyphKey]*image.Alpha // nil: the font has none
}

type glyphKey struct {
	r    rune
	face int
}

func newPainter(s drawing) (*painter, error) {
	p := &painter{s: s, glyphs: map[glyphKey]*image.Alpha{}}
	var err error
	if p.fonts, err = fonts(); err != nil {
		return nil, err
	}
	half := 4 // The scale, in halves: 2, 1 or a half.
	for half > 1 && s.Cols*s.Rows*screen.CellWidth*screen.CellHeight*half*half/4 > maxPixels {
		half /= 2
	}
	p.w, p.h, p.margin = screen.CellWidth*half/2, screen.CellHeight*half/2, margin*half/2
	const advance = 1233.0 / 2048 // of the font, in em
	for i := range p.faces {
		if p.faces[i], err = opentype.NewFace(p.fonts[i], &opentype.FaceOptions{
			Size: float64(p.w) / advance, DPI: 72, Hinting: font.HintingFull,
		}); err != nil {
			return nil, err
		}
	}
	p.img = image.NewRGBA(image.Rect(0, 0, s.Cols*p.w+2*p.margin, s.Rows*p.h+2*p.margin))
	draw.Draw(p.img, p.img.Bounds(), uniform(s.background(), 255), image.Point{}, draw.Src)
	return p, nil
}

func uniform(c screen.Color, alpha uint8) *image.Uniform {
	r, g, b, _ := c.RGB()
	return image.NewUniform(color.NRGBA{r, g, b, alpha})
}

// at is where a cell is.
func (p *painter) at(col, row int) image.Point {
	return image.Pt(p.margin+col*p.w, p.margin+row*p.h)
}

func (p *painter) background(col, row int) {
	bg := p.s.ink(col, row).bg
	if bg != p.s.background() {
		p.box(p.at(col, row), box{0, 0, p.w, p.h, 255}, bg)
	}
}

func (p *painter) box(at image.Point, b box, c screen.Color) {
	r := image.Rect(at.X+b.x, at.Y+b.y, at.X+b.x+b.w, at.Y+b.y+b.h)
	draw.Draw(p.img, r, uniform(c, b.alpha), image.Point{}, draw.Over)
}

func (p *painter) cell(col, row int) {
	c := p.s.Cells[row][col]
	at, look := p.at(col, row), p.s.ink(col, row)
	if c.Width > 0 {
		under, through := decorations(c.Style, p.w*c.Width, p.h)
		for _, b := range under {
			p.box(at, b, look.underline)
		}
		p.text(at, c, look)
		for _, b := range through {
			p.box(at, b, look.fg)
		}
	}
	if b, ok := p.s.cursorBox(col, row, p.w, p.h); ok {
		p.box(at, b, solid(0, screen.DefaultFg))
	}
}

func (p *painter) text(at image.Point, c screen.Cell, look ink) {
	if c.Text == " " || c.Text == "" {
		return
	}
	first, size := utf8.DecodeRuneInString(c.Text)
	if boxes := shapes(first, p.w, p.h); boxes != nil {
		for _, b := range boxes {
			if b.alpha == 0 {
				b.alpha = 255
				p.box(at, b, look.bg)
				continue
			}
			p.box(at, b, look.fg)
		}
		return
	}
	face := 0
	switch {
	case c.Style.Bold:
		face = 1
	case c.Style.Italic:
		face = 2
	}
	mask := p.glyph(first, face)
	if mask == nil {
		p.missing(at, c.Width, look.fg)
		return
	}
	p.draw(at, mask, look.fg)
	for _, mark := range c.Text[size:] {
		if mask := p.glyph(mark, face); mask != nil {
			p.draw(at, mask, look.fg)
		}
	}
}

func (p *painter) draw(at image.Point, mask *image.Alpha, c screen.Color) {
	r := mask.Bounds().Add(at)
	draw.DrawMask(p.img, r, uniform(c, 255), image.Point{}, mask, mask.Bounds().Min, draw.Over)
}

// missing draws what stands for a character that the font does not have.
func (p *painter) missing(at image.Point, width int, c screen.Color) {
	t := stroke(p.h)
	x, y, w, h := t, p.h/5, p.w*width-2*t, p.h*3/5
	for _, b := range []box{{x, y, w, t, 255}, {x, y + h - t, w, t, 255}, {x, y, t, h, 255}, {x + w - t, y, t, h, 255}} {
		p.box(at, b, c)
	}
}

// glyph is the form of a rune, placed in its cell; nil if the font has none.
func (p *painter) glyph(r rune, face int) *image.Alpha {
	key := glyphKey{r, face}
	mask, ok := p.glyphs[key]
	if !ok {
		mask = p.rasterize(r, face)
		p.glyphs[key] = mask
	}
	return mask
}

func (p *painter) rasterize(r rune, face int) *image.Alpha {
	if i, err := p.fonts[face].GlyphIndex(nil, r); err != nil || i == 0 {
		if face != 0 {
			return p.rasterize(r, 0) // The plain font has more.
		}
		return nil
	}
	baseline := p.h * 14 / 18
	rect, mask, from, _, ok := p.faces[face].Glyph(fixed.P(0, baseline), r)
	if !ok {
		return nil
	}
	// The face uses its mask again for the next glyph.
	own := image.NewAlpha(rect)
	draw.Draw(own, rect, mask, from, draw.Src)
	return own
}
