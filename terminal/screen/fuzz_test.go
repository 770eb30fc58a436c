package screen_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// inTime is reached by an input that hangs, and by no other, however busy the machine is.
const inTime = testenv.Patience

func seed(f *testing.F) {
	for in := range requests {
		f.Add([]byte("text\x1b[31m"+in+"世\r\n"), uint8(3), uint8(10), uint8(4))
	}
	for _, in := range statements {
		f.Add([]byte(in), uint8(1), uint8(80), uint8(24))
	}
	for _, in := range floods(100) {
		f.Add([]byte(in[:min(len(in), 200)]), uint8(7), uint8(2), uint8(2))
	}
}

// FuzzEmulator writes the same at once and in pieces: the screens are the same, and what
// paints one of them paints it again.
func FuzzEmulator(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, in []byte, piece, cols, rows uint8) {
		start := time.Now()
		size := screen.Size{Cols: int(cols), Rows: int(rows)}
		whole, pieces := screen.New(size, nil), screen.New(size, nil)
		_, _ = whole.Write(in)
		var scanner screen.Scanner
		scanner.Resize(size)
		for rest := in; len(rest) > 0; {
			n := min(int(piece)+1, len(rest))
			_, _ = pieces.Write(rest[:n])
			scanner.Scan(rest[:n], nil)
			rest = rest[n:]
		}
		s := whole.Screen()
		assert.Equal(t, s, pieces.Screen())
		assert.Equal(t, whole.Scrollback(), pieces.Scrollback())
		assert.Equal(t, s.Modes, scanner.Modes(), "the Scanner and the Emulator agree")
		checkCells(t, s)
		if scanner.Ground() && cols >= 2 {
			again := repainted(s)
			again.Modes, s.Modes = screen.Modes{}, screen.Modes{}
			assert.Equal(t, s, again, "%q", s.ANSI())
		}
		whole.Resize(screen.Size{Cols: int(rows), Rows: int(cols)})
		_, _ = whole.Write(in)
		checkCells(t, whole.Screen())
		assert.Zero(t, whole.Faults()+pieces.Faults())
		assert.Less(t, time.Since(start), inTime)
	})
}

// checkCells: the halves of wide characters are together, and the cursor is on the screen.
func checkCells(t *testing.T, s *screen.Screen) {
	t.Helper()
	for y, row := range s.Cells {
		assert.Len(t, row, s.Cols)
		for x, c := range row {
			if c.Width == 2 {
				assert.True(t, x+1 < len(row) && row[x+1].Width == 0, "row %d column %d", y, x)
			}
			if c.Width == 0 {
				assert.True(t, x > 0 && row[x-1].Width == 2 && c.Text == "", "row %d column %d", y, x)
			}
			for _, r := range c.Text {
				assert.True(t, r >= ' ' && (r < 0x7f || r >= 0xa0))
			}
		}
	}
	assert.Len(t, s.Cells, s.Rows)
	c := s.Cursor
	assert.True(t, c.Col >= 0 && c.Col < s.Cols && c.Row >= 0 && c.Row < s.Rows, "%v", c)
}

// FuzzScanner feeds pieces and the whole: modes, requests and what the filter leaves are the same,
// and there are no requests in that.
func FuzzScanner(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, in []byte, piece, _, _ uint8) {
		start := time.Now()
		var whole, pieces screen.Scanner
		var all, some []screen.Query
		whole.Scan(in, func(q screen.Query) { all = append(all, q) })
		for rest := in; len(rest) > 0; {
			n := min(int(piece)+1, len(rest))
			pieces.Scan(rest[:n], func(q screen.Query) {
				q.End += len(in) - len(rest)
				some = append(some, q)
			})
			rest = rest[n:]
		}
		assert.Equal(t, all, some)
		assert.Equal(t, whole.Modes(), pieces.Modes())
		assert.Equal(t, whole.Ground(), pieces.Ground())

		left := filtered(in, int(piece)+1)
		assert.Equal(t, filtered(in, len(in)+1), left)
		var after screen.Scanner
		asks := 0
		after.Scan([]byte(left), func(screen.Query) { asks++ })
		if len(in) < 1024 { // Longer sequences are passed on.
			assert.Zero(t, asks, "%q", left)
			assert.Equal(t, whole.Modes(), after.Modes())
		}
		if len(all) == 0 {
			assert.Equal(t, string(in), left, "nothing was asked")
		}
		assert.Less(t, time.Since(start), inTime)
	})
}
