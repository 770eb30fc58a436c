package screen_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// floods are what a program may print to keep its terminal busy, or to make it large.
func floods(n int) map[string]string {
	many := func(s string) string { return strings.Repeat(s, n) }
	var links, clusters strings.Builder
	for i := range n {
		fmt.Fprintf(&links, "\x1b]8;;https://example.com/%d%s\x1b\\x", i, strings.Repeat("y", 100))
		fmt.Fprintf(&clusters, "a%c%c", 0x300+i%0x70, 0x300+i/0x70%0x70)
	}
	return map[string]string{
		"REP":                  many("x\x1b[9999999999b"),
		"REP wide":             many("世\x1b[9999999999b"),
		"SU":                   many("\x1b[9999S"),
		"SU and text":          many("x\x1b[9999S"),
		"SD":                   many("\x1b[9999T"),
		"IL":                   many("\x1b[9999L"),
		"DL":                   many("\x1b[9999M"),
		"DL of half":           many("\x1b[500Mx"),
		"ICH":                  many("\x1b[9999@"),
		"DCH":                  many("\x1b[9999P"),
		"ECH":                  many("\x1b[9999X"),
		"CHT":                  many("\x1b[3g\x1b[G\x1b[9999I"),
		"ED":                   many("\x1b[2J\x1b[1J\x1b[J"),
		"line feeds":           many("x\n"),
		"reverse index":        many("x\x1bM\x1b[H"),
		"DECALN":               many("\x1b#8"),
		"RIS":                  many("\x1bc"),
		"alternate":            many("\x1b[?1049h\x1b[?1049l"),
		"DECCOLM":              many("\x1b[?3h\x1b[?3l"),
		"digits":               "\x1b[" + many("9") + "C",
		"parameters":           "\x1b[" + many("1;") + "m",
		"subparameters":        "\x1b[" + many("4:") + "m",
		"intermediates":        "\x1b[" + many("$") + "m",
		"OSC without an end":   "\x1b]0;" + many("title"),
		"DCS without an end":   "\x1bPq" + many("#0;2;0;0;0"),
		"APC without an end":   "\x1b_G" + many("AAAA"),
		"strings within":       many("\x1b]0;\x1bP\x1b_\x1b^"),
		"titles":               many("\x1b]0;" + strings.Repeat("x", 100) + "\a\x1b[22t"),
		"titles come back":     many("\x1b[23t"),
		"requests":             many("\x1b[c\x1b[6n\x1b[5n\x1b[>c\x1b]11;?\a\x1b[?2026$p"),
		"zalgo":                "a" + many("\u0301"),
		"many clusters":        clusters.String(),
		"joined emoji":         "👩" + many("\u200d👩"),
		"not UTF-8":            many("\xff\xc3\xe2\x82\xf0\x9f"),
		"C1":                   many("\x9b31m\x90\x9d0;x\x9c"),
		"C1 as UTF-8":          many("\u009b31m"),
		"links":                links.String(),
		"insert mode":          "\x1b[4h" + many("\x1b[Hx"),
		"save and restore":     many("\x1b7\x1b8\x1b[s\x1b[u"),
		"tab stops":            many("\x1b[5G\x1bH\t\x1b[g"),
		"region and index":     "\x1b[2;999r" + many("\x1b[999Hx\n"),
		"erase in a new color": many("\x1b[48;2;1;2;3m\x1b[2J"),
	}
}

// A flood must not make the emulator do what its numbers say: ten thousand million
// repetitions, say, which would not end in time on any machine.
func TestNoFloodHangsOrGrows(t *testing.T) {
	for _, size := range []screen.Size{{Cols: 1, Rows: 1}, {Cols: 80, Rows: 24}, {Cols: 500, Rows: 1000}} {
		for name, in := range floods(2000) {
			t.Run(fmt.Sprintf("%dx%d/%s", size.Cols, size.Rows, name), func(t *testing.T) {
				e := screen.New(size, nil)
				defer e.Close()
				start := time.Now()
				n, err := e.Write([]byte(in))
				assert.Less(t, time.Since(start), testenv.Patience, "it hangs")
				require.NoError(t, err)
				assert.Equal(t, len(in), n)
				assert.Zero(t, e.Faults())
				_, _ = e.Write([]byte("\x18\x1bcworks"))
				if size.Rows == 1000 {
					return // A picture of it takes longer than all that was done to it.
				}
				assert.Contains(t, []string{"works", "s"}, e.Screen().Text(), "after it")
			})
		}
	}
}

// What a program prints does not make the emulator larger than its screen and scrollback.
func TestMemoryIsBounded(t *testing.T) {
	const most = 6 << 20 // 1 MB of scrollback, and the links.
	for name, in := range floods(5000) {
		e := screen.New(screen.Size{Cols: 80, Rows: 24}, nil)
		before := heap()
		_, _ = e.Write([]byte(in))
		_, _ = e.Write([]byte(in))
		assert.Less(t, heap()-before, int64(most), name)
		runtime.KeepAlive(e)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestSizesAreClamped(t *testing.T) {
	for _, c := range []struct{ in, want screen.Size }{
		{screen.Size{}, screen.Size{Cols: 1, Rows: 1}},
		{screen.Size{Cols: -5, Rows: -5}, screen.Size{Cols: 1, Rows: 1}},
		{screen.Size{Cols: 1 << 40, Rows: 1 << 40}, screen.Size{Cols: 1000, Rows: 500}},
		{screen.Size{Cols: 300, Rows: 1000}, screen.Size{Cols: 300, Rows: 1000}},
	} {
		e := screen.New(c.in, nil)
		assert.Equal(t, c.want, e.Screen().Size)
		e.Resize(screen.Size{Cols: 10, Rows: 10})
		e.Resize(c.in)
		assert.Equal(t, c.want, e.Screen().Size)
	}
}

func TestResizesWhileAlternate(t *testing.T) {
	e := screen.New(screen.Size{Cols: 20, Rows: 5}, nil)
	_, _ = e.Write([]byte("one\r\ntwo\r\nthree 世\r\nfour\x1b[?1049h\x1b[2J\x1b[Halternate\x1b[5;10Hend"))
	e.Resize(screen.Size{Cols: 7, Rows: 3})
	assert.Equal(t, screen.Size{Cols: 7, Rows: 3}, e.Screen().Size)
	e.Resize(screen.Size{Cols: 30, Rows: 8})
	s := e.Screen()
	assert.True(t, s.Alternate)
	assert.NotContains(t, s.Text(), "alternate", "its start has scrolled off")
	_, _ = e.Write([]byte("\x1b[?1049l"))
	assert.Equal(t, "two\nthree\nfour", e.Screen().Text(), "the lines above the cursor stay next to it, half of a character does not")
	assert.Equal(t, []string{"one"}, e.Scrollback(), "the alternate screen leaves nothing")
	assert.Equal(t, screen.Cursor{Col: 4, Row: 2, Visible: true}, e.Screen().Cursor)
}

// A person drags the corner of a window.
func TestAStormOfResizes(t *testing.T) {
	e := screen.New(screen.Size{Cols: 80, Rows: 24}, nil)
	for i := range 2000 {
		_, _ = fmt.Fprintf(e, "line %d 世界\r\n", i)
		e.Resize(screen.Size{Cols: 1 + i*7%120, Rows: 1 + i*5%60})
	}
	assert.Zero(t, e.Faults())
	assert.LessOrEqual(t, len(e.Scrollback()), 1000)
}
