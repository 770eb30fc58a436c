package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// lineReader reads the messages of a client, one a line. The SDK gives a client up that sends what
// is no message, and with it all sessions would go. So such lines are answered here
// (JSON-RPC 2.0, "Error object"), and left out.
type lineReader struct {
	in   *bufio.Reader
	end  io.Closer
	out  *wholeWrites
	rest []byte // of a line that was checked
}

func newLineReader(in io.ReadCloser, out *wholeWrites) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10), end: in, out: out}
}

// Read implements io.Reader.
func (l *lineReader) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		if wrong := l.wrong(line, err); wrong != nil {
			l.answer(wrong)
		} else if len(bytes.TrimSpace(line)) > 0 {
			l.rest = append(bytes.TrimSuffix(line, []byte("\n")), '\n')
		}
		if err != nil && !errors.Is(err, errTooLong) && len(l.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// Close implements io.Closer.
func (l *lineReader) Close() error { return l.end.Close() }

var errTooLong = fmt.Errorf("the line has more than %d MiB", maxMessage>>20)

// line reads one, or, if that is too long, what is left of it.
func (l *lineReader) line() ([]byte, error) {
	var line []byte
	long := false
	for {
		piece, err := l.in.ReadSlice('\n')
		if long = long || len(line)+len(piece) > maxMessage; !long {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && err == nil {
			return nil, errTooLong
		}
		return line, err
	}
}

// wrong returns what is wrong with a line; nil if it is a message, or several, or blank.
func (l *lineReader) wrong(line []byte, err error) *jsonrpc.Error {
	line = bytes.TrimSpace(line)
	switch {
	case errors.Is(err, errTooLong):
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	case len(line) == 0:
		return nil
	case !json.Valid(line):
		return &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: "this is no JSON: each message is a JSON object on a line of its own"}
	case line[0] == '[':
		return wrongBatch(line)
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("this is no message of JSON-RPC 2.0: %v", err)}
	}
	return nil
}

// wrongBatch is wrong for several messages in a list, as the version 2025-03-26 has it.
func wrongBatch(line []byte) *jsonrpc.Error {
	var batch []json.RawMessage
	err := json.Unmarshal(line, &batch)
	for _, one := range batch {
		if err == nil {
			_, err = jsonrpc.DecodeMessage(one)
		}
	}
	if err == nil && len(batch) == 0 {
		err = errors.New("the list is empty")
	}
	if err != nil {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("this is no list of messages of JSON-RPC 2.0: %v", err)}
	}
	return nil
}

// answer answers a line that has no id that one could know.
func (l *lineReader) answer(wrong *jsonrpc.Error) {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": wrong})
	if err == nil {
		_, _ = l.out.Write(append(b, '\n')) // A client that is gone is noticed by who reads.
	}
}

// wholeWrites is a writer of which each write comes through in one piece.
type wholeWrites struct {
	mu sync.Mutex
	io.WriteCloser
}

func (w *wholeWrites) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(p)
}
