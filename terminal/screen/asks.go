package screen

import (
	"bytes"
	"strconv"
)

// asks reports whether the control sequence is a request. The terminal of a person would
// answer these too.
func (p *parser) asks() (kind QueryKind, ok bool) {
	plain, first := p.inters == 0, p.param(0, 0)
	switch p.final {
	case 'c':
		if plain && first == 0 {
			switch p.prefix {
			case 0:
				return QueryAttributes, true
			case '>':
				return QueryAttributes2, true
			case '=':
				return QueryAttributes3, true
			}
		}
	case 'n':
		return p.asksStatus(plain, first)
	case 'p':
		switch {
		case p.is(0, '$'):
			return QueryMode, true
		case p.is('?', '$'):
			return QueryModePrivate, true
		}
	case 'q':
		if p.is('>', 0) && first == 0 {
			return QueryVersion, true
		}
	case 't':
		return p.asksWindow(plain, first)
	case 'u': // The kitty keyboard; who asks goes by the answer to DA1 then.
		return QueryUnanswered, p.is('?', 0) || p.is(0, '&') // DECRQUPSS
	case 'm': // XTQMODKEYS
		return QueryUnanswered, p.is('?', 0)
	case 'S': // XTSMGRAPHICS
		return QueryUnanswered, p.is('?', 0)
	case 'x': // DECREQTPARM
		return QueryUnanswered, p.is(0, 0)
	case 'y': // DECRQCRA, which would tell what is on the screen
		return QueryUnanswered, p.is(0, '*')
	case 'w': // DECRQPSR
		return QueryUnanswered, p.is(0, '$')
	}
	return 0, false
}

func (p *parser) asksStatus(plain bool, first int) (QueryKind, bool) {
	switch {
	case !plain || p.prefix != 0 && p.prefix != '?' || first < 5:
		return 0, false
	case p.prefix == 0 && first == 5:
		return QueryStatus, true
	case p.prefix == 0 && first == 6:
		return QueryCursor, true
	case p.prefix == '?' && first == 6:
		return QueryCursorPrivate, true
	}
	return QueryUnanswered, p.prefix == '?' // The printer, the keyboard, the color scheme.
}

func (p *parser) asksWindow(plain bool, first int) (QueryKind, bool) {
	if !plain || p.prefix != 0 {
		return 0, false
	}
	switch first {
	case 14:
		return QuerySizePixels, true
	case 16:
		return QueryCellPixels, true
	case 18:
		return QuerySize, true
	case 19:
		return QuerySizeScreen, true
	}
	// The state, the position, and the titles: these are text that the program chose.
	return QueryUnanswered, first == 11 || first == 13 || first == 15 || first == 20 || first == 21
}

// stringQueries calls query for each request in a string that has ended, and reports
// whether there is any.
func (l *lexer) stringQueries(query func(Query)) bool {
	data := l.data[:l.length]
	switch l.kind {
	case 'P':
		switch {
		case bytes.HasPrefix(data, []byte("$q")):
			query(Query{Kind: QuerySetting})
			return true
		case bytes.HasPrefix(data, []byte("+q")):
			query(Query{Kind: QueryTermcap})
			return true
		}
	case '_':
		if bytes.HasPrefix(data, []byte("G")) && bytes.Contains(data, []byte("a=q")) {
			query(Query{}) // kitty's images
			return true
		}
	case ']':
		return l.commandQueries(data, query)
	}
	return false
}

// commandQueries are those in an OSC.
func (l *lexer) commandQueries(data []byte, query func(Query)) bool {
	number, rest, _ := bytes.Cut(data, []byte(";"))
	n, err := strconv.ParseUint(string(number), 10, 16)
	if err != nil {
		return false
	}
	asked := false
	ask := func(kind QueryKind, number int) {
		asked = true
		query(Query{Kind: kind, Number: number, bell: l.final == bel})
	}
	switch n {
	case 4: // number;color;number;color...
		for len(rest) > 0 {
			var index, color []byte
			index, rest, _ = bytes.Cut(rest, []byte(";"))
			color, rest, _ = bytes.Cut(rest, []byte(";"))
			if i, err := strconv.ParseUint(string(index), 10, 8); err == nil && string(color) == "?" {
				ask(QueryPalette, int(i))
			}
		}
	case 10, 11, 12, 13, 14, 15, 16, 17, 18, 19: // The second is of the next number.
		for i := n; len(rest) > 0; i++ {
			var color []byte
			color, rest, _ = bytes.Cut(rest, []byte(";"))
			switch {
			case string(color) != "?":
			case i <= 12:
				ask(QueryColor, int(i))
			default:
				ask(QueryUnanswered, int(i))
			}
		}
	case 1337: // iTerm2's
		if bytes.HasPrefix(rest, []byte("Report")) || bytes.HasPrefix(rest, []byte("RequestUpload")) {
			ask(QueryUnanswered, int(n))
		}
	case 5, 21, 22, 50, 52, 60: // Special colors, kitty's colors and pointers, the font, the clipboard, what is allowed.
		if bytes.HasSuffix(rest, []byte("?")) {
			ask(QueryUnanswered, int(n))
		}
	}
	return asked
}
