package screen_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// repainted is what an emulator shows that was in some state of its own and is painted by ANSI.
func repainted(s *screen.Screen) *screen.Screen {
	e := screen.New(s.Size, nil)
	defer e.Close()
	_, _ = e.Write([]byte("\x1b[?1049hold\x1b[3;4r\x1b[?6h\x1b[4h\x1b[41;4mtext\x1b(0\x1b[?1000;1006;2004h\x1b[?25l\x1b[4 q"))
	_, _ = e.Write(s.ANSI())
	return e.Screen()
}

// TestANSIPaintsTheSameScreen writes what paints a screen into another emulator.
func TestANSIPaintsTheSameScreen(t *testing.T) {
	for _, c := range append(scripts(t), captures(t)...) {
		t.Run(c.name, func(t *testing.T) {
			e := screen.New(c.size, nil)
			defer e.Close()
			_, _ = e.Write(c.script)
			assert.Equal(t, e.Screen(), repainted(e.Screen()))
		})
	}
}

func TestANSIKeepsStylesAndModes(t *testing.T) {
	const all = "\x1b]2;a title\a\x1b[1;2;3;4:3;5;7;9mall\x1b[0;8mhidden\x1b[0;31;102mcolors\x1b[38;5;200;48;2;1;2;3mmore" +
		"\x1b[0;4;58:5:3mline\x1b[58:2::9:8:7mline\x1b[0m\x1b]8;;https://example.com/?a=b;c\x1b\\link\x1b]8;;\x1b\\plain\x1b[44;K\x1b[32mpen" +
		"\x1b[?1;1002;1006;1004;2004h\x1b=\x1b[>4;2m\x1b[5;20r\x1b[?6h\x1b[3;4H\x1b[4h\x1b[?7l\x1b)0\x0e\x1b[5 q\x1b[?25l\x1b[?2026h"
	for _, in := range []string{all, "\x1b[?1049h" + all, all + "\x1b[!p", "\x1b[7m\x1b[2J\x1b[24;80Hx", "\x1b[?5h0123\x1b[80GX"} {
		e := screen.New(screen.Size{Cols: 80, Rows: 24}, nil)
		_, _ = e.Write([]byte(in))
		assert.Equal(t, e.Screen(), repainted(e.Screen()), "%q", in)
		e.Close()
	}
}

// A person comes while an editor runs, and leaves it.
func TestTheNormalScreenIsBehind(t *testing.T) {
	first := screen.New(screen.Size{Cols: 20, Rows: 4}, nil)
	_, _ = first.Write([]byte("$ ls\r\n\x1b[31mfile\x1b[m\r\n$ vi\x1b[?1049h\x1b[2J\x1b[Hediting\x1b[4;4H\x1b[7m"))
	second := screen.New(screen.Size{Cols: 20, Rows: 4}, nil)
	_, _ = second.Write(first.Screen().ANSI())
	assert.Equal(t, "editing", second.Screen().Text())
	for _, e := range []*screen.Emulator{first, second} {
		_, _ = e.Write([]byte("\x1b[?1049l"))
		assert.Equal(t, "$ ls\nfile\n$ vi", e.Screen().Text())
		assert.Equal(t, screen.Cursor{Col: 4, Row: 2, Visible: true}, e.Screen().Cursor)
	}
	assert.Equal(t, first.Screen(), second.Screen())
}

// What a program prints after somebody came goes where it would have gone.
func TestThePictureGoesOnFromANSI(t *testing.T) {
	for _, next := range []string{"x", "\r\nx", "\x1b[Kx", "\bx", "\x1b[2;3Hx", "世"} {
		first := screen.New(screen.Size{Cols: 10, Rows: 3}, nil)
		second := screen.New(screen.Size{Cols: 10, Rows: 3}, nil)
		_, _ = first.Write([]byte("\x1b[31m0123456789"))
		_, _ = second.Write(first.Screen().ANSI())
		_, _ = first.Write([]byte(next))
		_, _ = second.Write([]byte(next))
		assert.Equal(t, first.Screen(), second.Screen(), "%q", next)
	}
}
