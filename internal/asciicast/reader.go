package asciicast

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"time"
)

// Read returns the header of a recording, and its events, which are read from r as
// they are asked for, once. The events end with the first error, with the number of
// the line in it. One that is io.ErrUnexpectedEOF says that the last line was cut
// short, as by a crash: what came before it is the recording. A line may have 1 MiB.
//
// Of a header, what a [Header] has no field for is left out. Events of any [Code] are
// returned, as they are.
func Read(r io.Reader) (Header, iter.Seq2[Event, error], error) {
	in := &lines{r: bufio.NewReader(r)}
	line, err := in.next()
	if errors.Is(err, io.EOF) {
		err = in.wrong("there is no header: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return Header{}, nil, err
	}
	var first header
	if err := in.decode(line, &first); err != nil {
		// A recording of another version has other fields, so that comes first.
		var other struct{ Version int }
		if json.Unmarshal(line, &other) != nil || other.Version == version {
			return Header{}, nil, err
		}
		first.Version = other.Version
	}
	if first.Version != version {
		return Header{}, nil, in.wrong("version %d: only %d is read; asciinema 3 has \"convert -f asciicast-v2\"", first.Version, version)
	}
	h := Header{Cols: first.Width, Rows: first.Height, Title: first.Title, Command: first.Command, Env: first.Env}
	if h.Cols == 0 || h.Rows == 0 {
		return Header{}, nil, in.wrong("the size is %dx%d: width and height must be there, and above 0", h.Cols, h.Rows)
	}
	if first.Timestamp != "" {
		const latest = 1 << 40 // In 36812, and no int64 overflows.
		seconds, err := first.Timestamp.Float64()
		if err != nil || math.Abs(seconds) > latest {
			return Header{}, nil, in.wrong("timestamp %q is no time", first.Timestamp)
		}
		h.Started = time.Unix(int64(math.Floor(seconds)), 0)
	}
	return h, in.events, nil
}

// lines are those of a recording.
type lines struct {
	r  *bufio.Reader
	n  int  // the number of the last one
	nl bool // it has its end
}

// next returns a line that is not empty.
func (in *lines) next() ([]byte, error) {
	for {
		in.n++
		var line []byte
		for {
			part, err := in.r.ReadSlice('\n')
			line = append(line, part...)
			switch {
			case len(line) > maxLine:
				return nil, in.wrong("it has more than %d bytes", maxLine)
			case errors.Is(err, bufio.ErrBufferFull):
				continue
			case errors.Is(err, io.EOF) && len(line) == 0:
				return nil, io.EOF
			case err != nil && !errors.Is(err, io.EOF):
				return nil, in.wrong("reading it: %w", err)
			}
			in.nl = err == nil
			break
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
}

func (in *lines) events(yield func(Event, error) bool) {
	for {
		line, err := in.next()
		if errors.Is(err, io.EOF) {
			return
		}
		var e Event
		if err == nil {
			e, err = in.event(line)
		}
		if !yield(e, err) || err != nil {
			return
		}
	}
}

func (in *lines) event(line []byte) (Event, error) {
	var fields []json.RawMessage
	if err := in.decode(line, &fields); err != nil {
		return Event{}, err
	}
	const number = 3
	if len(fields) != number {
		return Event{}, in.wrong("an event has %d fields, not %d: seconds, code and data", number, len(fields))
	}
	var (
		seconds float64
		e       Event
	)
	for i, field := range []any{&seconds, &e.Code, &e.Data} {
		if err := in.decode(fields[i], field); err != nil {
			return Event{}, err
		}
	}
	const micros = float64(time.Second / time.Microsecond)
	const longest = 1 << 33 // Close to what a Duration has, 292 years.
	if seconds < 0 || seconds > longest {
		return Event{}, in.wrong("%v seconds are no time of an event: it must be from 0 to %d", seconds, longest)
	}
	// To the microsecond: what is beyond is the float's.
	e.At = time.Duration(math.Round(seconds*micros)) * time.Microsecond
	return e, nil
}

func (in *lines) decode(text []byte, v any) error {
	err := json.Unmarshal(text, v)
	if err != nil && !in.nl {
		return in.wrong("it is cut short: %w", io.ErrUnexpectedEOF)
	}
	if err != nil {
		return in.wrong("%w", err)
	}
	return nil
}

// wrong is an error in the line that was read last.
func (in *lines) wrong(format string, args ...any) error {
	return fmt.Errorf("asciicast: line %d: "+format, append([]any{in.n}, args...)...)
}
