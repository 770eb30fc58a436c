package picture_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/picture"
	"github.com/limpet-sh/limpet/terminal/screen"
)

const printed = "\x1b]0;a <title> \x1b\\\x1b[1;31mbold\x1b[0m <&>\"' \x1b[7mreverse\x1b[0m\r\n世界 😀 e\u0301 ┌─╬═┐ ▒█ ⣿\r\n" +
	"\x1b[3mitalic \x1b[4:3;58:5:1mcurly\x1b[0m \x1b[9mstrike\x1b[8mhidden\x1b[0m\x1b[2mfaint\x1b[0m\x1b[44mblue\x1b[K"

func painted(t *testing.T, in string, size screen.Size) *screen.Screen {
	t.Helper()
	e := screen.New(size, nil)
	defer e.Close()
	_, err := e.Write([]byte(in))
	require.NoError(t, err)
	return e.Screen()
}

func TestSVGIsXMLWithTheText(t *testing.T) {
	var b bytes.Buffer
	s := painted(t, printed, screen.Size{Cols: 40, Rows: 5})
	s.Cells[4][0].Text = "\x01\xff" // A program cannot do that, but a Screen is anybody's.
	require.NoError(t, picture.SVG(&b, s))
	var text bytes.Buffer
	for d := xml.NewDecoder(bytes.NewReader(b.Bytes())); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		if data, ok := token.(xml.CharData); ok {
			text.Write(data)
		}
	}
	for _, want := range []string{"a <title> ", "bold", "<&>\"'", "reverse", "世", "😀", "e\u0301", "italic", "\ufffd"} {
		assert.Contains(t, text.String(), want)
	}
}

func TestPNGShowsColorsAndTheCursor(t *testing.T) {
	s := painted(t, "\x1b[41m  \x1b[48;2;1;2;3m \x1b[0m█", screen.Size{Cols: 10, Rows: 2})
	var b bytes.Buffer
	require.NoError(t, picture.PNG(&b, s))
	img, err := png.Decode(&b)
	require.NoError(t, err)
	assert.Equal(t, 10*18+2*16, img.Bounds().Dx())
	assert.Equal(t, 2*36+2*16, img.Bounds().Dy())
	at := func(col, row int) [3]uint32 {
		r, g, b, _ := img.At(16+col*18+9, 16+row*36+18).RGBA()
		return [3]uint32{r >> 8, g >> 8, b >> 8}
	}
	assert.Equal(t, [3]uint32{0xcd, 0, 0}, at(1, 0))
	assert.Equal(t, [3]uint32{1, 2, 3}, at(2, 0))
	assert.Equal(t, [3]uint32{0xe5, 0xe5, 0xe5}, at(3, 0), "a block")
	assert.Equal(t, [3]uint32{0xe5, 0xe5, 0xe5}, at(4, 0), "the cursor")
	assert.Equal(t, [3]uint32{0, 0, 0}, at(5, 1))
}

// All characters of these have a form, whatever the scale is.
func TestPicturesOfAllSizes(t *testing.T) {
	testenv.Slow(t)
	for _, size := range []screen.Size{{Cols: 1, Rows: 1}, {Cols: 40, Rows: 5}, {Cols: 200, Rows: 150}, {Cols: 400, Rows: 260}} {
		s := painted(t, printed, size)
		var p, v counter
		require.NoError(t, picture.PNG(&p, s))
		require.NoError(t, picture.SVG(&v, s))
		assert.Positive(t, p)
		assert.Positive(t, v)
	}
	all := ""
	for r := rune(0x2500); r < 0x2900; r++ {
		all += string(r)
	}
	require.NoError(t, picture.PNG(io.Discard, painted(t, all, screen.Size{Cols: 64, Rows: 20})))
}

type counter int

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func TestPicturesTellWhenTheyCannotBeWritten(t *testing.T) {
	s := painted(t, printed, screen.Size{Cols: 40, Rows: 5})
	assert.ErrorIs(t, picture.PNG(broken{}, s), io.ErrClosedPipe)
	assert.ErrorIs(t, picture.SVG(broken{}, s), io.ErrClosedPipe)
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
