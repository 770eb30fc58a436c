package transfer

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The frames of a file that is read: see the package's documentation.
const (
	frameHead = len("0123456789abcdef 01234567\n")
	endWord   = "end             " // as long as an offset
	mostEnd   = 64 << 10
)

// ended is the last frame.
type ended struct {
	End
	Error   string `json:"error,omitempty"`
	Changed bool   `json:"changed,omitempty"` // which is why
}

var errStream = errors.New("what the other side sends makes no sense")

// frames writes a stream.
type frames struct {
	w io.Writer
	b [frameHead + mostChunk]byte
}

func (f *frames) chunk(offset int64, b []byte) error {
	copy(f.b[:], fmt.Sprintf("%016x %08x\n", offset, len(b)))
	n := copy(f.b[frameHead:], b)
	_, err := f.w.Write(f.b[:frameHead+n])
	return err
}

func (f *frames) end(e ended) error {
	b, err := json.Marshal(e)
	if err == nil {
		_, err = fmt.Fprintf(f.w, "%s %08x\n%s", endWord, len(b), b)
	}
	return err
}

// parse reads a stream to its end, which it returns. It calls to with each chunk; those are in order, no larger than mostChunk, and
// valid until to returns. The first begins at from, or at 0.
func parse(r io.Reader, from int64, to func(offset int64, b []byte) error) (end ended, err error) {
	const buffer = 64 << 10
	in := bufio.NewReaderSize(r, buffer)
	var head [frameHead]byte
	var b []byte
	next := from
	for first := true; ; first = false {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return end, whole(err)
		}
		const digits = 16
		length, err := strconv.ParseUint(string(head[digits+1:frameHead-1]), 16, 31)
		if err != nil || head[digits] != ' ' || head[frameHead-1] != '\n' {
			return end, errStream
		}
		if string(head[:digits]) == endWord {
			return last(in, int(length))
		}
		offset, err := strconv.ParseInt(string(head[:digits]), 16, 64)
		if first && offset == 0 {
			next = 0
		}
		if err != nil || offset != next || length > mostChunk {
			return end, errStream
		}
		if b == nil {
			b = make([]byte, mostChunk)
		}
		if _, err := io.ReadFull(in, b[:length]); err != nil {
			return end, whole(err)
		}
		if err := to(offset, b[:length]); err != nil {
			return end, &calledError{err}
		}
		next += int64(length)
	}
}

// last reads the last frame, behind which there must be nothing.
func last(in io.Reader, length int) (end ended, err error) {
	if length > mostEnd {
		return end, errStream
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(in, b); err != nil {
		return end, whole(err)
	}
	if json.Unmarshal(b, &end) != nil {
		return end, errStream
	}
	if n, err := in.Read(b[:min(length, 1)]); n > 0 || err != nil && !errors.Is(err, io.EOF) {
		return end, errStream
	}
	return end, nil
}

// whole is the error of a stream that ends too early.
func whole(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
