package screen

import "fmt"

// QueryKind says what a program asks its terminal.
type QueryKind uint8

// What can be asked.
const (
	QueryUnanswered    QueryKind = iota // a request that we leave alone, such as the kitty keyboard's CSI ? u
	QueryAttributes                     // DA1, CSI c
	QueryAttributes2                    // DA2, CSI > c
	QueryAttributes3                    // DA3, CSI = c
	QueryVersion                        // XTVERSION, CSI > q
	QueryStatus                         // DSR, CSI 5 n
	QueryCursor                         // CPR, CSI 6 n
	QueryCursorPrivate                  // DECXCPR, CSI ? 6 n
	QueryMode                           // DECRQM, CSI Ps $ p
	QueryModePrivate                    // DECRQM, CSI ? Ps $ p
	QueryColor                          // OSC 10, 11 and 12, the foreground, background and cursor
	QueryPalette                        // OSC 4 ; n
	QuerySizePixels                     // CSI 14 t
	QueryCellPixels                     // CSI 16 t
	QuerySize                           // CSI 18 t
	QuerySizeScreen                     // CSI 19 t
	QuerySetting                        // DECRQSS, DCS $ q
	QueryTermcap                        // XTGETTCAP, DCS + q
)

// What an answer says of a cell, in pixels, and of the default colors. Package picture draws them so.
const (
	CellWidth, CellHeight = 9, 18

	DefaultFg = colorRGB | 0xe5e5e5
	DefaultBg = colorRGB // black
)

// Query is a request that the program made of its terminal. It waits for the answer, and
// most give up after some time or at the answer to a later one.
type Query struct {
	Kind   QueryKind
	Number int // of the mode or the color
	End    int // the request ends behind so many of the bytes that Scan got: its answer is of then

	state byte // what DECRPM says: 0 unknown, 1 set, 2 reset
	top   int  // rows count from here
	bell  bool // the answer ends as the request did
}

// Answer returns what xterm would answer, nil where we never do. The cursor and the size are those at [Query.End]. All of it is made of numbers
// and of words of our own: nothing that the program printed comes back.
func (q Query) Answer(cursor Cursor, size Size) []byte {
	str := func(format string, args ...any) []byte { return fmt.Appendf(nil, format, args...) }
	end := "\x1b\\"
	if q.bell {
		end = "\a"
	}
	switch q.Kind {
	case QueryAttributes:
		return str("\x1b[?62;22c") // A VT220 with colors.
	case QueryAttributes2:
		return str("\x1b[>1;10;0c")
	case QueryAttributes3:
		return str("\x1bP!|00000000\x1b\\")
	case QueryVersion:
		return str("\x1bP>|limpet\x1b\\")
	case QueryStatus:
		return str("\x1b[0n")
	case QueryCursor, QueryCursorPrivate:
		private := ""
		if q.Kind == QueryCursorPrivate {
			private = "?"
		}
		return str("\x1b[%s%d;%dR", private, max(cursor.Row-q.top, 0)+1, cursor.Col+1)
	case QueryMode:
		return str("\x1b[%d;%d$y", q.Number, q.state)
	case QueryModePrivate:
		return str("\x1b[?%d;%d$y", q.Number, q.state)
	case QueryColor:
		c := DefaultFg
		if q.Number == 11 {
			c = DefaultBg
		}
		return str("\x1b]%d;%s%s", q.Number, xcolor(c), end)
	case QueryPalette:
		return str("\x1b]4;%d;%s%s", q.Number, xcolor(Indexed(uint8(q.Number))), end)
	case QuerySizePixels:
		return str("\x1b[4;%d;%dt", size.Rows*CellHeight, size.Cols*CellWidth)
	case QueryCellPixels:
		return str("\x1b[6;%d;%dt", CellHeight, CellWidth)
	case QuerySize:
		return str("\x1b[8;%d;%dt", size.Rows, size.Cols)
	case QuerySizeScreen:
		return str("\x1b[9;%d;%dt", size.Rows, size.Cols)
	case QuerySetting:
		return str("\x1bP0$r\x1b\\") // Invalid, always: the valid answer to some has text in it.
	case QueryTermcap:
		return str("\x1bP0+r\x1b\\")
	}
	return nil
}

// xcolor is a color as XParseColor reads it.
func xcolor(c Color) string {
	r, g, b, _ := c.RGB()
	return fmt.Sprintf("rgb:%02x%02x/%02x%02x/%02x%02x", r, r, g, g, b, b)
}
