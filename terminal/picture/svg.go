package picture

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// svgScale is how much finer than a pixel the boxes are placed.
const svgScale = 2

// SVG writes a picture of the screen, with the cursor. Its text is text, in the viewer's
// monospaced font. The error is that of w.
func SVG(w io.Writer, of *screen.Screen) error {
	s := drawing{of}
	var b bytes.Buffer
	width, height := s.Cols*screen.CellWidth+2*margin, s.Rows*screen.CellHeight+2*margin
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" `+
		`font-family="DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="15" xml:space="preserve">`+"\n", width, height)
	if s.Title != "" {
		fmt.Fprintf(&b, "<title>%s</title>\n", escaped(s.Title))
	}
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="%v"/>`+"\n", s.background())
	for row := range s.Cells {
		fmt.Fprintf(&b, `<g transform="translate(%d %d)">`, margin, margin+row*screen.CellHeight)
		s.svgBackgrounds(&b, row)
		s.svgText(&b, row)
		b.WriteString("</g>\n")
		if _, err := b.WriteTo(w); err != nil { // A row at a time: a screen can be large.
			return err
		}
	}
	_, err := io.WriteString(w, "</svg>\n")
	return err
}

// svgBackgrounds writes one rectangle for all neighbors with the same background.
func (s drawing) svgBackgrounds(b *bytes.Buffer, row int) {
	cols := len(s.Cells[row])
	for from := 0; from < cols; {
		bg, to := s.ink(from, row).bg, from+1
		for to < cols && s.ink(to, row).bg == bg {
			to++
		}
		if bg != s.background() {
			fmt.Fprintf(b, `<rect x="%d" width="%d" height="%d" fill="%v"/>`, from*screen.CellWidth, (to-from)*screen.CellWidth, screen.CellHeight, bg)
		}
		from = to
	}
}

// svgText writes the characters of a row. Those of one look that are ASCII are one element.
func (s drawing) svgText(b *bytes.Buffer, row int) {
	cells := s.Cells[row]
	for from := 0; from < len(cells); {
		first, look, to := cells[from], s.ink(from, row), from+1
		for plain(first) && to < len(cells) && plain(cells[to]) && cells[to].Style == first.Style && s.ink(to, row) == look {
			to++
		}
		text := ""
		for _, c := range cells[from:to] {
			text += c.Text
		}
		cols := max(first.Width, to-from)
		s.svgRun(b, from, cols, first, look, text)
		if bar, ok := s.cursorBox(from, row, screen.CellWidth*svgScale, screen.CellHeight*svgScale); ok {
			svgBox(b, s.Cursor.Col*screen.CellWidth, bar, solid(0, screen.DefaultFg))
		} else if bar, ok := s.cursorBox(s.Cursor.Col, row, screen.CellWidth*svgScale, screen.CellHeight*svgScale); ok && s.Cursor.Col > from && s.Cursor.Col < to {
			svgBox(b, s.Cursor.Col*screen.CellWidth, bar, solid(0, screen.DefaultFg))
		}
		from = max(to, from+cols)
	}
}

// plain reports whether a cell is one ASCII character.
func plain(c screen.Cell) bool { return len(c.Text) == 1 }

func (s drawing) svgRun(b *bytes.Buffer, col, cols int, first screen.Cell, look ink, text string) {
	x := col * screen.CellWidth
	under, through := decorations(first.Style, cols*screen.CellWidth*svgScale, screen.CellHeight*svgScale)
	for _, one := range under {
		svgBox(b, x, one, look.underline)
	}
	r, _ := utf8.DecodeRuneInString(text)
	if boxes := shapes(r, screen.CellWidth*svgScale, screen.CellHeight*svgScale); boxes != nil && !plain(first) {
		for _, one := range boxes {
			c := look.fg
			if one.alpha == 0 {
				c, one.alpha = look.bg, 255
			}
			svgBox(b, x, one, c)
		}
	} else if len(bytes.TrimLeft([]byte(text), " ")) > 0 {
		const baseline = 14
		fmt.Fprintf(b, `<text x="%d" y="%d" textLength="%d" lengthAdjust="spacingAndGlyphs" fill="%v"`, x, baseline, cols*screen.CellWidth, look.fg)
		if first.Style.Bold {
			b.WriteString(` font-weight="bold"`)
		}
		if first.Style.Italic {
			b.WriteString(` font-style="italic"`)
		}
		fmt.Fprintf(b, ">%s</text>", escaped(text))
	}
	for _, one := range through {
		svgBox(b, x, one, look.fg)
	}
}

func svgBox(b *bytes.Buffer, x int, one box, c screen.Color) {
	fmt.Fprintf(b, `<rect x="%g" y="%g" width="%g" height="%g" fill="%v"`,
		float64(x)+float64(one.x)/svgScale, float64(one.y)/svgScale, float64(one.w)/svgScale, float64(one.h)/svgScale, c)
	if one.alpha < 255 {
		fmt.Fprintf(b, ` fill-opacity="%.2f"`, float64(one.alpha)/255)
	}
	b.WriteString("/>")
}

// escaped is text in XML. What XML cannot have is replaced.
func escaped(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // A Buffer never fails.
	return b.String()
}
