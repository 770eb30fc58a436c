package screen_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal/screen"
)

func painted(t *testing.T, in string, size screen.Size) *screen.Screen {
	t.Helper()
	e := screen.New(size, nil)
	defer e.Close()
	_, err := e.Write([]byte(in))
	require.NoError(t, err)
	return e.Screen()
}

func TestSGR(t *testing.T) {
	red := screen.Indexed(1)
	for in, want := range map[string]screen.Style{
		"":                               {},
		"\x1b[31;42m":                    {Fg: red, Bg: screen.Indexed(2)},
		"\x1b[91;107m":                   {Fg: screen.Indexed(9), Bg: screen.Indexed(15)},
		"\x1b[31;42m\x1b[39;49m":         {},
		"\x1b[38;5;200m":                 {Fg: screen.Indexed(200)},
		"\x1b[38:5:200m":                 {Fg: screen.Indexed(200)},
		"\x1b[38;2;1;2;3;48;2;4;5;6m":    {Fg: screen.RGB(1, 2, 3), Bg: screen.RGB(4, 5, 6)},
		"\x1b[38:2:1:2:3m":               {Fg: screen.RGB(1, 2, 3)},
		"\x1b[38:2::1:2:3m":              {Fg: screen.RGB(1, 2, 3)},
		"\x1b[38;2;999;2;3m":             {Fg: screen.RGB(255, 2, 3)},
		"\x1b[38;5m\x1b[38m\x1b[38;2;1m": {},
		"\x1b[38;5;1;1m":                 {Fg: red, Bold: true},
		"\x1b[38:5;1m":                   {Bold: true},
		"\x1b[1;2;3;5;7;8;9m":            {Bold: true, Faint: true, Italic: true, Blink: true, Reverse: true, Conceal: true, Strike: true},
		"\x1b[1;2;3;4;5;7;8;9m\x1b[22;23;24;25;27;28;29m": {},
		"\x1b[4m":                      {Underline: screen.UnderlineSingle},
		"\x1b[4:3m":                    {Underline: screen.UnderlineCurly},
		"\x1b[4:3m\x1b[4:0m":           {},
		"\x1b[21m":                     {Underline: screen.UnderlineDouble},
		"\x1b[4:9999m":                 {Underline: screen.UnderlineDashed},
		"\x1b[4;58:5:1m":               {Underline: screen.UnderlineSingle, UnderlineColor: red},
		"\x1b[58;2;1;2;3m":             {UnderlineColor: screen.RGB(1, 2, 3)},
		"\x1b[58;5;1m\x1b[59m":         {},
		"\x1b[1;31m\x1b[m":             {},
		"\x1b[1;31m\x1b[0;4m":          {Underline: screen.UnderlineSingle},
		"\x1b[>4;1m\x1b[?1m":           {},
		"\x1b]8;;http://a/?b;c\x1b\\":  {Link: "http://a/?b;c"},
		"\x1b]8;id=1;http://a\a\x1b[m": {Link: "http://a"},
		"\x1b]8;;http://a\a\x1b]8;;\a": {},
		"\x1b]8;;" + strings.Repeat("x", 5000) + "\a": {},
	} {
		s := painted(t, in+"x", screen.Size{Cols: 5, Rows: 2})
		assert.Equal(t, screen.Cell{Text: "x", Width: 1, Style: want}, s.Cells[0][0], "%q", in)
		assert.Equal(t, want, s.Pen, "%q", in)
	}
}

func TestErasingLeavesTheBackground(t *testing.T) {
	for _, in := range []string{"\x1b[2J", "\x1b[K", "\x1b[5X", "\x1b[L", "\x1b[M", "\x1b[P\x1b[5G\x1b[X", "\n\n\n\x1b[2;1H\x1b[A", "\x1b[@", "\x1b[S", "\x1b[T"} {
		s := painted(t, "\x1b[41;1;4m"+in, screen.Size{Cols: 5, Rows: 1})
		assert.Equal(t, screen.Cell{Text: " ", Width: 1, Style: screen.Style{Bg: screen.Indexed(1)}}, s.Cells[0][4-4*strings.Count(in, "@")], "%q", in)
	}
}

func TestTitles(t *testing.T) {
	for in, want := range map[string]string{
		"\x1b]0;one\a":     "one",
		"\x1b]2;two\x1b\\": "two",
		"\x1b]1;icon\a":    "",
		"\x1b]0;a;b\a":     "a;b",
		"\x1b]2;\x01evil\x7f\u202e\u009b31m\xff\a":          "evil31m\ufffd",
		"\x1b]0;first\a\x1b[22;0t\x1b]0;second\a\x1b[23;0t": "first",
		"\x1b]0;first\a\x1b[22t\x1b]0;second\a":             "second",
		"\x1b]0;x\x18\x1b]0;y\x1b[m":                        "",
		"\x1bktitle of screen\x1b\\":                        "",
		"\x1b]0;" + strings.Repeat("ä", 9000) + "\a":        strings.Repeat("ä", 512),
	} {
		s := painted(t, in, screen.Size{Cols: 5, Rows: 2})
		assert.Equal(t, want, s.Title, "%q", in)
		assert.Empty(t, s.Text(), "%q", in)
	}
}

func TestScrollback(t *testing.T) {
	lines := func(opts *screen.Options, in string) []string {
		e := screen.New(screen.Size{Cols: 10, Rows: 2}, opts)
		defer e.Close()
		_, _ = e.Write([]byte(in))
		return e.Scrollback()
	}
	const in = "one  \r\n世界\r\n\r\n\x1b[31mfour\x1b[K\x1b[m\r\nfive\r\nsix"
	assert.Equal(t, []string{"one", "世界", "", "four"}, lines(nil, in))
	assert.Equal(t, []string{"", "four"}, lines(&screen.Options{Scrollback: 2}, in))
	assert.Empty(t, lines(&screen.Options{Scrollback: -1}, in))
	assert.Empty(t, lines(nil, "\x1b[?1049h"+in), "the alternate screen has none")
	assert.Empty(t, lines(nil, in+"\x1b[3J"))
	assert.Equal(t, []string{"one", "世界", "", "four", "five"}, lines(nil, in+"\x1b[1S"))
	assert.Equal(t, []string{"one", "世界", "", "four"}, lines(nil, in+"\x1b[1;1H\x1b[M"), "a deleted line is none")
	var many strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&many, "%d\r\n", i)
	}
	got := lines(nil, many.String())
	require.Len(t, got, 1000)
	assert.Equal(t, "3999", got[0])
	assert.Equal(t, "4998", got[999])
}

func TestInvalidUTF8IsReplaced(t *testing.T) {
	for in, want := range map[string]string{
		"a\xffb": "a�b", "\xe2\x82a": "�a", "\xe2\x82\xac": "€", "\xc3\xc3\xa9": "�é", "\xf0\x9f\x98": "", "\xf0\x9f\x1b[mx": "�x",
		"\x80\x80": "��", "\xed\xa0\x80": "���", "\x9b31m": "�31m", "\xc2\x9b31m": "31m", "a\u200bb\u202ec\u200ed\ufeffe": "abcde",
	} {
		got := painted(t, in, screen.Size{Cols: 20, Rows: 2})
		assert.Equal(t, want, got.Text(), "%q", in)
		assert.True(t, utf8.ValidString(got.Text()))
	}
}

func TestAScreenIsAValue(t *testing.T) {
	e := screen.New(screen.Size{Cols: 10, Rows: 2}, nil)
	_, _ = e.Write([]byte("before"))
	s := e.Screen()
	_, _ = e.Write([]byte("\x1b[2J\x1b[Hafter"))
	assert.Equal(t, "before", s.Text())
	e.Close()
	e.Close()
	n, err := e.Write([]byte("more"))
	assert.NoError(t, err)
	assert.Equal(t, 4, n)
	e.Resize(screen.Size{Cols: 3, Rows: 3})
	assert.Empty(t, e.Screen().Text())
	assert.Empty(t, e.Scrollback())
}

func TestText(t *testing.T) {
	s := painted(t, "\r\n a \r\n\r\n世\r\n", screen.Size{Cols: 10, Rows: 8})
	assert.Equal(t, "\n a\n\n世", s.Text())
	assert.Equal(t, " a", s.Line(1))
	assert.Empty(t, s.Line(-1)+s.Line(99))
	assert.Empty(t, (&screen.Screen{}).Text())
	assert.Equal(t, screen.Cell{Text: "世", Width: 2}, s.Cells[3][0])
	assert.Equal(t, screen.Cell{}, s.Cells[3][1])
}

func TestColorsAsText(t *testing.T) {
	for c, want := range map[screen.Color]string{0: "", screen.Indexed(0): "0", screen.Indexed(255): "255", screen.RGB(1, 2, 255): "#0102ff"} {
		b, err := json.Marshal(c)
		require.NoError(t, err)
		assert.Equal(t, `"`+want+`"`, string(b))
		var back screen.Color
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, c, back)
	}
	for _, bad := range []string{"256", "-1", "red", "#12345", "#gggggg"} {
		var c screen.Color
		assert.Error(t, c.UnmarshalText([]byte(bad)), bad)
	}
	r, g, b, ok := screen.Indexed(16 + 36*5 + 6*1).RGB()
	assert.Equal(t, []any{uint8(255), uint8(95), uint8(0), true}, []any{r, g, b, ok})
	r, _, _, _ = screen.Indexed(255).RGB()
	assert.Equal(t, uint8(238), r)
}
