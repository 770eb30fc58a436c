package saved

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A state as bytes, for another process:
//
//	"limpet state 1\n"
//	the fields of State, in the order of [State.fields]
//	the SHA-256 of all before
//
// A text is its length and its bytes, a list is its length and its texts, and all numbers are
// unsigned varints. A version of limpet must read what the versions before it have written: a session
// is upgraded by that. So a change of the fields, or of the parts, takes a new number.
const encoding = "limpet state 1\n"

// ErrEncoding means that bytes are no state, or that they are damaged.
var ErrEncoding = errors.New("no state of a shell, or a damaged one")

// Encode returns the state as bytes, for [Decode]. The values of variables are in them, which may
// be secrets.
func (s State) Encode() []byte {
	e := encoder(append(make([]byte, 0, s.Size()+1024), encoding...))
	s.fields(&e)
	sum := sha256.Sum256(e)
	return append(e, sum[:]...)
}

// Decode reads what [State.Encode] has written, and nothing else: the error is [ErrEncoding]. The
// state keeps none of the bytes.
func Decode(b []byte) (State, error) {
	text, ok := bytes.CutPrefix(b, []byte(encoding))
	if !ok || len(text) < sha256.Size {
		return State{}, fmt.Errorf("%w: it does not begin with %q, or is cut off", ErrEncoding, encoding)
	}
	body := b[:len(b)-sha256.Size]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], b[len(body):]) {
		return State{}, fmt.Errorf("%w: its checksum is wrong", ErrEncoding)
	}
	var s State
	d := decoder{left: text[:len(text)-sha256.Size]}
	s.fields(&d)
	if d.failed || len(d.left) > 0 {
		return State{}, fmt.Errorf("%w: its fields do not fit", ErrEncoding)
	}
	return s, nil
}

// coder writes fields, or reads them: one function for both cannot forget one.
type coder interface {
	text(*[]byte)
	number(*uint64)
}

// fields passes all of the state to a coder.
func (s *State) fields(c coder) {
	for i := range s.part {
		c.text(&s.part[i])
	}
	codeString(c, &s.Dir)
	for _, flag := range []*bool{&s.ExitTrap, &s.IntTrap, &s.InFunction} {
		codeBool(c, flag)
	}
	for _, list := range []*[]string{&s.Readonly, &s.Unsaved, &s.LeftOut, &s.Nameless, &s.Begin, &s.Given.Env} {
		codeList(c, list)
	}
	updates := slices.Sorted(maps.Values(s.Given.updates))
	codeList(c, &updates)
	if len(updates) > 0 {
		s.Given = s.Given.With(updates)
	}
	after, open := uint64(s.LogoutAfter), uint64(s.Open)
	c.number(&after)
	c.number(&open)
	s.LogoutAfter, s.Open = time.Duration(after), int(open)
}

func codeString(c coder, s *string) {
	b := []byte(*s)
	c.text(&b)
	*s = string(b)
}

func codeBool(c coder, is *bool) {
	var n uint64
	if *is {
		n = 1
	}
	c.number(&n)
	*is = n != 0
}

func codeList(c coder, list *[]string) {
	n := uint64(len(*list))
	c.number(&n)
	if d, ok := c.(*decoder); ok {
		if n > uint64(len(d.left)) { // Each has a byte at least.
			d.failed, n = true, 0
		}
		if n > 0 {
			*list = make([]string, n)
		}
	}
	for i := range *list {
		codeString(c, &(*list)[i])
	}
}

type encoder []byte

func (e *encoder) number(n *uint64) { *e = binary.AppendUvarint(*e, *n) }

func (e *encoder) text(b *[]byte) {
	*e = append(binary.AppendUvarint(*e, uint64(len(*b))), *b...)
}

// decoder reads from the bytes that are left. After a failure it reads nothing.
type decoder struct {
	left   []byte
	failed bool
}

func (d *decoder) number(n *uint64) {
	v, size := binary.Uvarint(d.left)
	if d.failed || size <= 0 {
		d.failed, d.left, *n = true, nil, 0
		return
	}
	*n, d.left = v, d.left[size:]
}

func (d *decoder) text(b *[]byte) {
	var n uint64
	d.number(&n)
	if n > uint64(len(d.left)) {
		d.failed, d.left = true, nil
		return
	}
	*b = bytes.Clone(d.left[:n])
	d.left = d.left[n:]
}
