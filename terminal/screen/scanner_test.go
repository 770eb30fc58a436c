package screen_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/terminal/screen"
)

func modesOf(in string) screen.Modes {
	var s screen.Scanner
	s.Scan([]byte(in), nil)
	return s.Modes()
}

func TestScannerFollowsModes(t *testing.T) {
	for in, want := range map[string]screen.Modes{
		"plain text, \u00e9\r\n":            {},
		"\x1b[?1h\x1b=":                     {AppCursor: true, AppKeypad: true},
		"\x1b[?1;2004h\x1b[?1l":             {BracketedPaste: true},
		"\x1b[?1049h\x1b[?25l":              {Alternate: true, CursorHidden: true},
		"\x1b[?1049h\x1b[?1049l":            {},
		"\x1b[?47h":                         {Alternate: true},
		"\x1b[?1000h\x1b[?1006h":            {Mouse: screen.MouseClick, MouseSGR: true},
		"\x1b[?1003h\x1b[?1002h":            {Mouse: screen.MouseDrag},
		"\x1b[?1003h\x1b[?1000l":            {},
		"\x1b[?1004h\x1b[?2026h\x1b[?2026l": {Focus: true},
		"\x1b[?7l\x1b[?6h\x1b[4;20h":        {AutoWrapOff: true, Origin: true, Insert: true, NewLine: true},
		"\x1b[3;10r":                        {Top: 3, Bottom: 10},
		"\x1b[3r":                           {Top: 3},
		"\x1b[3;10r\x1b[r":                  {},
		"\x1b[10;3r":                        {},
		"\x1b(0\x1b)0\x1b(B\x0e":            {LineDrawing: [2]bool{false, true}, ShiftOut: true},
		"\x0e text \x0f":                    {},
		"\x0f text \x0e":                    {ShiftOut: true},
		"\x1b(0\x1b7\x1b(B\x1b8":            {LineDrawing: [2]bool{true, false}},
		"\x1b[5 q":                          {CursorShape: screen.CursorBar, CursorBlink: true},
		"\x1b[>4;2m":                        {ModifyKeys: 2},
		"\x1b[>4;2m\x1b[>4;m":               {},
		"\x1b[?1;2004h\x1b[4h\x1bc":         {},
		"\x1b[?1h\x1b[4h\x1b[?2004h\x1b[!p": {BracketedPaste: true},
		"\x1b[?1\x18h":                      {},
		"\x1b[?1\x1b[?2004h":                {BracketedPaste: true},
		"\x1b[?1$h\x1b[>1h\x1b[1h":          {},
		"\x1b]0;\x1b[?1h":                   {AppCursor: true},
		"\x1b]0;[?1h\x07\x1b[?2004h":        {BracketedPaste: true},
		"\x1bPq[?1h\x07\x1b\\":              {},
		"\u009b?1h\x9b?1h":                  {},
		"\x1b[?\n1\rh":                      {AppCursor: true},
		"\x1b[?1h\x1b[?99999999999999999l":  {AppCursor: true},
	} {
		assert.Equal(t, want, modesOf(in), "%q", in)
	}
}

func TestRestoreMakesTheModes(t *testing.T) {
	for _, m := range []screen.Modes{
		{},
		{AppCursor: true, AppKeypad: true, BracketedPaste: true, Alternate: true, CursorHidden: true, Focus: true, SyncOutput: true,
			MouseSGR: true, Mouse: screen.MouseMotion, ModifyKeys: 1, AltScrollOff: true, AutoWrapOff: true, Origin: true, Insert: true,
			NewLine: true, ReverseScreen: true, Top: 2, Bottom: 5, LineDrawing: [2]bool{true, true}, ShiftOut: true,
			CursorShape: screen.CursorUnderline, CursorBlink: true},
		{Mouse: screen.MouseX10, Top: 7, CursorShape: screen.CursorBar},
		{Bottom: 3, CursorBlink: true},
	} {
		assert.Equal(t, m, modesOf(string(m.Restore())), "%q", m.Restore())
	}
	assert.Empty(t, screen.Modes{}.Restore())
}

func TestGroundIsWhereAStreamCanBeCut(t *testing.T) {
	for in, want := range map[string]bool{
		"": true, "a": true, "a\x1b": false, "\x1b[": false, "\x1b[1": false, "\x1b[1m": true, "\x1b(": false, "\x1b(B": true,
		"\x1b]0;x": false, "\x1b]0;x\x1b": false, "\x1b]0;x\x1b\\": true, "\x1b]0;x\a": true, "\x1bPx\a": false, "\x1b_x\x18": true,
		"\xc3": false, "\xc3\xa9": true, "\xe2\x82": false, "\xe2\x82\xac": true, "\xf0\x9f\x98": false, "\xf0\x9f\x98\x80": true,
		"\xf0\x9f\x98\x80\xc3": false, "text\xe2": false, "\x80": true, "\xff": true, "\xc3a": true, "\xc3\x1b[m": true,
	} {
		var s screen.Scanner
		s.Scan([]byte(in), nil)
		assert.Equal(t, want, s.Ground(), "%q", in)
		s = screen.Scanner{}
		for i := range len(in) {
			s.Scan([]byte{in[i]}, nil)
		}
		assert.Equal(t, want, s.Ground(), "%q in bytes", in)
	}
}

func TestACopyIsACheckpoint(t *testing.T) {
	var s screen.Scanner
	s.Scan([]byte("\x1b[?1h\x1b]11;"), nil)
	saved := s
	s.Scan([]byte("\x18\x1b[?1l"), nil)
	asked := 0
	saved.Scan([]byte("?\a"), func(screen.Query) { asked++ })
	assert.Equal(t, 1, asked)
	assert.True(t, saved.Modes().AppCursor)
	assert.False(t, s.Modes().AppCursor)
}

func TestScannerDoesNotAllocate(t *testing.T) {
	in := []byte("text\x1b[31mred\x1b[m\x1b]0;title\a\x1bPq" + string(bytes.Repeat([]byte("x"), 100)) + "\x1b\\\x1b[?25l")
	var s screen.Scanner
	assert.Zero(t, testing.AllocsPerRun(100, func() { s.Scan(in, nil) }))
}
