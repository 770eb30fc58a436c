package screen

import "bytes"

// Scanner follows the modes that a program sets, and finds what it asks, in all that it
// prints. It is meant for a read loop: text goes through it at some GB/s, nothing is
// allocated, and no sequence makes it grow. The zero value is at the start of a stream
// on a terminal that was just started. A copy is a checkpoint. It is not safe for concurrent
// use.
type Scanner struct {
	lexer
	modal modal
	need  uint8 // bytes that are missing of a rune
}

// lexer is a parser that keeps the start of a string, which is all that is needed of it
// to know a request.
type lexer struct {
	parser
	length uint8
	data   [64]byte
}

func (l *lexer) next(b byte) action {
	act := l.parser.next(b)
	switch act {
	case actString:
		l.length = 0
	case actData:
		if int(l.length) < len(l.data) {
			l.data[l.length] = b
			l.length++
		}
	}
	return act
}

// Scan takes the next bytes that the program printed. query may be nil; it is called for
// each request, in their order, and must not use the Scanner.
func (s *Scanner) Scan(p []byte, query func(Query)) {
	all := len(p)
	for len(p) > 0 {
		if s.state != ground {
			p = p[s.sequence(p, all-len(p), query):]
			continue
		}
		n := bytes.IndexByte(p, esc)
		if n < 0 {
			s.text(p)
			return
		}
		s.text(p[:n])
		s.next(esc)
		p, s.need = p[n+1:], 0
	}
}

// sequence takes the bytes of a sequence up to its end, and returns how many these are. Before them Scan got others.
func (s *Scanner) sequence(p []byte, before int, query func(Query)) (n int) {
	for n < len(p) && s.state != ground {
		b := p[n]
		n++
		if act := s.next(b); act > actText {
			s.act(act, b, before+n, query)
		}
		if s.state == stringData && int(s.length) == len(s.data) {
			for n < len(p) && p[n] >= ' ' { // Images are long.
				n++
			}
		}
	}
	return n
}

// text has no sequences, but it may have SO and SI, and end within a rune.
func (s *Scanner) text(p []byte) {
	if len(p) == 0 {
		return
	}
	for rest := p; ; {
		// Both are rare: each is looked for in what is behind the last of both.
		i := bytes.IndexByte(rest, so)
		if i < 0 {
			if bytes.IndexByte(rest, si) >= 0 {
				s.modal.ShiftOut = false
			}
			break
		}
		s.modal.ShiftOut = true
		rest = rest[i+1:]
	}
	const most = 3 // The bytes behind the first of a rune.
	if len(p) > most {
		p, s.need = p[len(p)-most:], 0
	}
	for _, b := range p {
		switch {
		case b >= 0xf0 && b <= 0xf4:
			s.need = 3
		case b >= 0xe0 && b < 0xf0:
			s.need = 2
		case b >= 0xc2 && b < 0xe0:
			s.need = 1
		case b&0xc0 == 0x80 && s.need > 0:
			s.need--
		default:
			s.need = 0
		}
	}
}

func (s *Scanner) act(act action, b byte, end int, query func(Query)) {
	switch act {
	case actControl:
		s.modal.control(b)
	case actEscape:
		s.modal.escape(&s.parser)
	case actCSI:
		if kind, ok := s.asks(); !ok {
			s.modal.csi(&s.parser)
		} else if query != nil {
			query(s.query(kind, end))
		}
	case actStringEnd:
		if query != nil {
			s.stringQueries(func(q Query) {
				q.End = end
				query(q)
			})
		}
	}
}

// query fills in what a request asks for.
func (s *Scanner) query(kind QueryKind, end int) Query {
	q := Query{Kind: kind, End: end}
	switch kind {
	case QueryMode, QueryModePrivate:
		q.Number = s.param(0, 0)
		q.state = s.modal.report(q.Number, kind == QueryModePrivate)
	case QueryCursor, QueryCursorPrivate:
		if s.modal.Origin {
			q.top = max(int(s.modal.Top)-1, 0)
		}
	}
	return q
}

// Modes returns what is set now.
func (s *Scanner) Modes() Modes { return s.modal.Modes }

// Ground reports whether the bytes so far end between two sequences and not within a rune:
// a stream can be cut here, and a fresh Emulator can begin here with these Modes.
func (s *Scanner) Ground() bool { return s.state == ground && s.need == 0 }

// Resize tells that the terminal has this size now, which ends a scroll region. Without
// it a region that goes to the last row is not known as such.
func (s *Scanner) Resize(size Size) { s.modal.resize(size.Clamp().Rows) }
