package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
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
			l.answer(nil, wrong)
		} else if id := inexact(line); id != nil {
			l.answer(id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("nothing was done: the id %s cannot be returned as it is: use a string, or a whole number between -%d and %[2]d", id, exactID)})
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

// exactID is the largest whole number below which a float64, which the SDK keeps an id in, has every one.
const exactID = 1<<53 - 1

// inexact returns the id of a request in a line that the SDK would answer under another id, so that the client would wait
// for ever; nil if the line has no such request. A line may be a batch of messages: inexact returns the first such id, and the SDK is given none of the batch.
func inexact(line []byte) json.RawMessage {
	line = bytes.TrimSpace(line)
	var messages []request
	if bytes.HasPrefix(line, []byte("[")) {
		_ = json.Unmarshal(line, &messages) // It is valid, see wrong.
	} else {
		messages = make([]request, 1)
		_ = json.Unmarshal(line, &messages[0]) // As above; a blank line has no id.
	}
	for _, m := range messages {
		if m.Method == "" || len(m.ID) == 0 || m.ID[0] != '-' && (m.ID[0] < '0' || m.ID[0] > '9') {
			continue
		}
		if id, err := strconv.ParseFloat(string(m.ID), 64); err != nil || id != math.Trunc(id) || math.Abs(id) > exactID {
			return m.ID
		}
	}
	return nil
}

// request is what inexact must know of a message.
type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
}

// answer answers a line, with the id null if nobody can know which it has.
func (l *lineReader) answer(id json.RawMessage, wrong *jsonrpc.Error) {
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": wrong})
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
