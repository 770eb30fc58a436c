package asciicast

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"
)

// firstTail is how much of the end of a recording Length reads first, in bytes. If no event is in that, it reads lastTail, in which there is a whole
// line behind one that is cut short.
const (
	firstTail = 64 << 10
	lastTail  = 2*maxLine + 2
)

// Length returns the time of the last event of a recording that has size bytes. It reads the end of the recording alone, 2 MiB at most, and passes
// over lines that are no events, such as one that is still being written. A recording without events has the length 0.
func Length(r io.ReaderAt, size int64) (time.Duration, error) {
	for _, tail := range []int64{firstTail, lastTail} {
		start := max(size-tail, 0)
		b := make([]byte, size-start)
		n, err := r.ReadAt(b, start)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, fmt.Errorf("asciicast: reading the end: %w", err)
		}
		b = b[:n] // The file may have shrunk.
		if start > 0 {
			_, b, _ = bytes.Cut(b, []byte("\n")) // That line began before.
		}
		if e, ok := lastEvent(b); ok {
			return e.At, nil
		}
		if start == 0 {
			return 0, nil
		}
	}
	return 0, fmt.Errorf("asciicast: reading the end: there is no event in the last %d bytes", lastTail)
}

// lastEvent returns the last event in some lines.
func lastEvent(b []byte) (e Event, ok bool) {
	in := &lines{nl: true}
	for len(b) > 0 {
		at := bytes.LastIndexByte(b, '\n')
		line := b[at+1:]
		b = b[:max(at, 0)]
		if e, err := in.event(line); err == nil {
			return e, true
		}
	}
	return Event{}, false
}
