package screen

import "bytes"

// maxQuery is how long a request can be. What is longer is passed on.
const maxQuery = 1024

// QueryFilter takes the requests out of what a program prints, so that a terminal on which
// a person watches does not answer as well. Those are the ones that a Scanner finds. The
// zero value is at the start of a stream. It keeps at most 1 KB: a sequence is held back
// until its kind is known. It is not safe for concurrent use.
type QueryFilter struct {
	lexer
	held []byte // a sequence from its ESC on
	mark int    // where an ESC is in it that may be of ST
	pass bool   // the sequence is too long to be a request
	cut  bool   // its ESC cut off another sequence
}

// Filter appends what is left of p to dst, byte for byte, and returns it. Where a request cut off
// another sequence, CAN does so in its place. dst must not overlap p.
func (f *QueryFilter) Filter(dst, p []byte) []byte {
	for len(p) > 0 {
		if f.state == ground {
			n := bytes.IndexByte(p, esc)
			if n < 0 {
				return append(dst, p...)
			}
			dst, p = append(dst, p[:n]...), p[n:]
		}
		dst = f.sequence(dst, p[0])
		p = p[1:]
	}
	return dst
}

// sequence takes a byte that belongs to a sequence.
func (f *QueryFilter) sequence(dst []byte, b byte) []byte {
	before := f.state
	act := f.next(b)
	if before == stringEscape && act != actStringEnd {
		// The string was cut off; the ESC begins something else, and b may begin one more.
		dst = f.release(dst, f.mark)
		f.pass, f.cut = false, true
	}
	switch {
	case b == esc && before == stringData:
		f.mark = len(f.held)
	case b == esc:
		dst = f.release(dst, len(f.held))
		f.pass, f.cut = false, before != ground
	}
	if f.pass && b != esc { // An ESC may begin a request.
		dst = append(dst, b)
	} else {
		f.held = append(f.held, b)
	}
	switch {
	case f.state == ground:
		if act == actCSI || act == actStringEnd {
			dst = f.drop(dst, act)
		}
		dst = f.release(dst, len(f.held))
		f.pass = false
	case len(f.held) >= maxQuery && f.state != stringEscape:
		dst = f.release(dst, len(f.held))
		f.pass = true
	}
	return dst
}

// drop empties what is held if it is a request. The controls within, which are done as if they
// stood before it, stay.
func (f *QueryFilter) drop(dst []byte, act action) []byte {
	if f.pass {
		return dst
	}
	switch act {
	case actCSI:
		if _, asks := f.asks(); !asks {
			return dst
		}
		dst = f.cancel(dst)
		for _, b := range f.held {
			if b < ' ' && b != esc {
				dst = append(dst, b)
			}
		}
	case actStringEnd:
		if !f.stringQueries(func(Query) {}) {
			return dst
		}
		dst = f.cancel(dst)
	}
	f.held = f.held[:0]
	return dst
}

// cancel ends a sequence that the request has cut off: it must not go on with what follows.
func (f *QueryFilter) cancel(dst []byte) []byte {
	if f.cut {
		dst = append(dst, can)
	}
	return dst
}

// release passes on the first n bytes of what is held.
func (f *QueryFilter) release(dst []byte, n int) []byte {
	n = min(n, len(f.held))
	dst = append(dst, f.held[:n]...)
	f.held = append(f.held[:0], f.held[n:]...)
	return dst
}

// Held is how many bytes are held back, of the last ones: a stream that breaks off goes on behind what Filter has returned if it is asked
// for from the first of them on, by another QueryFilter.
func (f *QueryFilter) Held() int { return len(f.held) }

// Flush appends what is held back and begins a new stream. At the end of one that is a
// sequence which was not finished.
func (f *QueryFilter) Flush(dst []byte) []byte {
	dst = append(dst, f.held...)
	*f = QueryFilter{held: f.held[:0]}
	return dst
}
