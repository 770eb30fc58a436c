package terminal

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// FuzzOutput lets a program print anything, in any pieces and at any sizes: what is kept
// of it is what it has printed, and the screen, the text and the last line can be had.
func FuzzOutput(f *testing.F) {
	f.Add([]byte("hello\r\n\x1b[31mred\x1b[m"), uint16(3), uint16(40))
	f.Add([]byte("x\x1b[9999999999b\x1b[?1049h\x1b[6n\x1b]0;"), uint16(1), uint16(1))
	f.Add([]byte("\xe6\x97\xa5\xff\x1b[2;1r\x1b[99S\x1bP$qm\x1b\\"), uint16(2), uint16(500))
	f.Fuzz(func(t *testing.T, data []byte, piece, size uint16) {
		const limit = 6 << 10
		if len(data) > 64<<10 {
			return
		}
		first := Size{Cols: int(size%200) + 1, Rows: int(size%60) + 1}
		p := &program{out: newRing(limit)}
		p.display = newDisplay(p.out, newHistory(testTime, first), 100)
		p.feedAt = limit / 2
		defer p.display.close()
		for i, rest := 0, data; len(rest) > 0; i++ {
			n := copy(p.out.room(), rest[:min(int(piece)+1, len(rest))])
			p.scan.Scan(rest[:n], func(q screen.Query) { q.Answer(screen.Cursor{}, first) })
			var modes *screen.Modes
			if now := p.scan.Modes(); p.scan.Ground() {
				modes = &now
			}
			p.display.history.printed(p.out.end, testTime.Add(time.Duration(i)*time.Millisecond))
			p.out.commit(n, modes)
			if p.out.end >= p.feedAt && p.display.feedAhead() {
				p.feedAt = p.out.end + limit/2
			}
			if i%100 == 99 {
				p.display.history.resized(p.out.end, testTime, Size{Cols: i%150 + 1, Rows: i%50 + 1})
			}
			rest = rest[n:]
		}
		p.out.finish()
		start, all := p.out.tail(1 << 30)
		require.True(t, bytes.Equal(data[start:], all))
		s := p.display.look()
		require.EqualValues(t, len(data), s.Offset)
		size2, _ := p.display.history.size(s.Offset)
		require.Equal(t, size2, s.Size)
		require.Len(t, s.Cells, s.Rows)
		require.True(t, utf8.ValidString(s.Text()))
		line := p.out.lastLine()
		require.True(t, utf8.ValidString(line) && !strings.ContainsAny(line, "\x1b\r\n"), "%q", line)
		for offset := start; offset < int64(len(data)); {
			text := p.display.text(offset, 100)
			require.Greater(t, text.Next, offset)
			require.True(t, utf8.ValidString(text.Text))
			offset = text.Next
		}
	})
}
