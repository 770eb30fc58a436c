package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// The streams of a frame. What came of the command has no offset, and is the last.
const (
	streamLast   = 0
	streamStdout = 1
	streamStderr = 2
)

// frame is a piece of a stream of output:
//
//	1 OFFSET MISSED LENGTH\n    and so many bytes of stdout, the first of them at OFFSET; MISSED bytes before it are not kept
//	2 OFFSET MISSED LENGTH\n    of stderr
//	0 LENGTH\n                  and a last, as JSON
type frame struct {
	stream int
	offset int64
	missed int64
	data   []byte
}

// longestHead bounds the line that a frame begins with.
const longestHead = 64

var errFrame = errors.New("what comes is no frame of the protocol")

func (f frame) writeTo(w io.Writer) error {
	head := fmt.Sprintf("%d %d %d %d\n", f.stream, f.offset, f.missed, len(f.data))
	if f.stream == streamLast {
		head = fmt.Sprintf("%d %d\n", f.stream, len(f.data))
	}
	if _, err := io.WriteString(w, head); err != nil {
		return err
	}
	_, err := w.Write(f.data)
	return err
}

// readFrame reads the next one. The error is io.ErrUnexpectedEOF where a stream breaks off, also
// between two frames: the last one is known.
func readFrame(r *bufio.Reader) (f frame, err error) {
	head, err := readHead(r)
	if err != nil {
		return f, err
	}
	fields := bytes.Split(head, []byte(" "))
	numbers := make([]int64, len(fields))
	for i, field := range fields {
		if numbers[i], err = number(field); err != nil {
			return f, err
		}
	}
	most := int64(mostChunk)
	switch {
	case len(numbers) == 2 && numbers[0] == streamLast:
		most = mostReply
	case len(numbers) == 4 && (numbers[0] == streamStdout || numbers[0] == streamStderr):
		f.offset, f.missed = numbers[1], numbers[2]
	default:
		return f, errFrame
	}
	f.stream = int(numbers[0])
	size := numbers[len(numbers)-1]
	if size > most || f.offset+size < 0 || f.missed > f.offset {
		return f, errFrame
	}
	if size <= mostChunk {
		f.data = make([]byte, size)
		if _, err := io.ReadFull(r, f.data); err != nil {
			return f, cutOff(err)
		}
		return f, nil
	}
	// It grows with what comes, not with what is announced.
	var data bytes.Buffer
	if _, err := io.CopyN(&data, r, size); err != nil {
		return f, cutOff(err)
	}
	f.data = data.Bytes()
	return f, nil
}

// readHead reads the line of a frame, without its newline.
func readHead(r *bufio.Reader) ([]byte, error) {
	var head []byte
	for {
		c, err := r.ReadByte()
		if err != nil {
			return nil, cutOff(err)
		}
		if c == '\n' {
			return head, nil
		}
		if head = append(head, c); len(head) >= longestHead {
			return nil, errFrame
		}
	}
}

func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// number reads digits, and nothing else that strconv takes.
func number(field []byte) (int64, error) {
	if len(field) == 0 || len(bytes.Trim(field, "0123456789")) > 0 || len(field) > 1 && field[0] == '0' {
		return 0, errFrame
	}
	n, err := strconv.ParseInt(string(field), 10, 64)
	if err != nil {
		return 0, errFrame
	}
	return n, nil
}
