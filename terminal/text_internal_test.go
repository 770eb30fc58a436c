package terminal

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// printedIn is the display of a program that has printed the data, in reads of so many bytes.
// What is known between two sequences is forgotten if that is asked for.
func printedIn(data []byte, limit int64, reads int, forgetful bool) *display {
	d := newDisplay(newRing(limit), newHistory(testTime, DefaultSize), 10)
	var scan screen.Scanner
	for rest := data; len(rest) > 0; {
		n := copy(d.out.room(), rest[:min(reads, len(rest))])
		scan.Scan(rest[:n], nil)
		var known *screen.Modes
		if modes := scan.Modes(); scan.Ground() && !forgetful {
			known = &modes
		}
		d.out.commit(n, known)
		rest = rest[n:]
	}
	d.out.finish()
	return d
}

func TestTextOfWhatWasCutBeginsBetweenRunesAndSequences(t *testing.T) {
	testenv.Slow(t)
	t.Parallel() // It computes, and starts nothing.
	const unit, plain = "\x1b[38;5;123m日本\x1b[0m\x1b]0;a title\a|", "日本|"
	all := strings.Repeat(plain, 3000)
	for shift := 0; shift < len(unit); shift += testenv.Repeats(17, 5, 1) {
		data := []byte(strings.Repeat("x", shift) + strings.Repeat(unit, 3000))
		for _, reads := range []int{4095, 1000, 37} {
			d := printedIn(data, 64<<10, reads, false)
			start, end := d.out.bounds()
			require.Positive(t, start)
			whole := d.text(0, 1<<20)
			require.True(t, strings.HasSuffix(all, whole.Text), "shift %d, reads of %d: %.30q", shift, reads, whole.Text)
			assert.GreaterOrEqual(t, whole.Missed, start)
			assert.Less(t, whole.Offset-start, int64(2*len(unit)), "it does not begin far behind")
			assert.Equal(t, end, whole.Next)
			for _, from := range []int64{start, start + 1, start + 2, whole.Offset + 1, end - 30, -7} {
				text := d.text(from, 1<<20)
				require.True(t, strings.HasSuffix(all, text.Text), "shift %d, from %d: %.30q", shift, from, text.Text)
			}
			// As it was read again from its log.
			at := d.resume()
			past := newDisplay(ringOf(start, data[start:]), newHistory(testTime, DefaultSize), 10)
			past.first = &at
			assert.Equal(t, whole, past.text(0, 1<<20))
		}
	}
}

func TestTextBeginsWithAWholeRuneWhereNothingIsKnown(t *testing.T) {
	for shift := range 3 {
		data := []byte(strings.Repeat("x", shift) + strings.Repeat("日", 60_000))
		d := printedIn(data, 64<<10, 4096, true)
		start, _ := d.out.bounds()
		require.Positive(t, start)
		text := d.text(0, 1<<20)
		assert.Empty(t, strings.Trim(text.Text, "日"), "shift %d", shift)
		assert.Less(t, text.Offset-start, int64(3))
	}
}

// Whatever output began in, from there on it is read as if that were known.
func TestWhereAllAgreeNoSequenceIsUnderWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	pieces := []string{"text", "日", "\n", "\x1b", "\x1b[", "31", ";", "m", "\x1b]0;", "\a", "\x1b\\", "\\", "\x1bP", "q", "\x18", "\x1b(", "B", "\x1b7", "\xe6", "\x97", " ", "k"}
	some := func() (s string) {
		for range rng.IntN(20) {
			s += pieces[rng.IntN(len(pieces))]
		}
		return s
	}
	for range 20_000 {
		before, after := some(), some()
		n, ok := agreed([]byte(after))
		if !ok {
			continue
		}
		var scan screen.Scanner
		scan.Scan([]byte(before+after[:n]), nil)
		require.True(t, scan.Ground(), "%q %q", before, after[:n])
	}
}

// A ring that is smaller than a read has something to be read nevertheless.
func TestTextIsThereWhereOnlyTheEndIsKnown(t *testing.T) {
	d := printedIn(bytes.Repeat([]byte("0123456789abcdef"), 1400), 1, 4096, false)
	start, end := d.out.bounds()
	require.Positive(t, start)
	text := d.text(0, 1<<20)
	assert.NotEmpty(t, text.Text)
	assert.Equal(t, end, text.Next)
}

func TestTextHasNoControlsAndNothingThatTurnsItAround(t *testing.T) {
	const in = "a\x1b[1mb\x1b[m\u009b31mc\u009d0;t\u009c\r\n" + "\u202egpj.\u2069exe\u200e\ufeff\r\r\n" + "10%\r20%\tx\b\a\x00\x0f\n" + "👩\u200d👧 e\u0301\r\n" + "\x1b]0;tÜ tle\aend \u009b\u202eof\u2066 it"
	d := printedIn([]byte(in), 1<<20, len(in), false)
	assert.Equal(t, "ab31mc0;t\ngpj.exe\n10%\r20%\tx\n👩\u200d👧 e\u0301\nend of it", d.text(0, 1<<20).Text)
	assert.Equal(t, "end of it", d.out.lastLine())
	d = printedIn([]byte("10%\rdone\t\u009b\u202e5 s\r\n\u202e\u0085\r\n"), 1<<20, 100, false)
	assert.Equal(t, "done 5 s", d.out.lastLine())
}

func TestAskingForTheCursorCopiesNoScreen(t *testing.T) {
	large := Size{Cols: 1000, Rows: 500}
	d := newDisplay(newRing(1<<20), newHistory(testTime, large), 10)
	defer d.close()
	d.out.commit(copy(d.out.room(), "abc\r\nde\x1b[5 q"), nil)
	cursor, size := d.cursor()
	s := d.look()
	assert.Equal(t, s.Cursor, cursor)
	assert.Equal(t, screen.Cursor{Col: 2, Row: 1, Visible: true, Shape: screen.CursorBar, Blink: true}, cursor)
	assert.Equal(t, s.Size, size)
	assert.Zero(t, testing.AllocsPerRun(10, func() { d.cursor() }))
}
