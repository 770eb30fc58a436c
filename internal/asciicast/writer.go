package asciicast

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/runes"
)

// maxData is how much output goes in one event. JSON makes at most six bytes of
// one, so the line is shorter than maxLine.
const maxData = 64 << 10

// Writer records a terminal. Each event is one Write of one whole line, at once: a
// recording that is cut short by a crash is played up to there.
//
// All methods may be called at the same time. They block on the io.Writer. Once it
// has failed all of them return that error, since half a line may be written,
// behind which nothing could be read.
type Writer struct {
	mu     sync.Mutex
	w      io.Writer
	last   time.Duration // of the last event: none is before it
	cut    []byte        // the start of a rune, of which the rest is to come
	err    error         // for good
	closed bool
}

// NewWriter writes the header. The caller closes w, after the Writer.
func NewWriter(w io.Writer, h Header) (*Writer, error) {
	first := header{Version: version, Width: h.Cols, Height: h.Rows, Command: h.Command, Title: h.Title, Env: h.Env}
	if first.Width == 0 {
		first.Width = defaultCols
	}
	if first.Height == 0 {
		first.Height = defaultRows
	}
	if !h.Started.IsZero() {
		first.Timestamp = json.Number(strconv.FormatInt(h.Started.Unix(), 10))
	}
	line, err := encode(first)
	if err != nil {
		return nil, fmt.Errorf("asciicast: writing the header: %w", err)
	}
	if len(line) > maxLine {
		return nil, fmt.Errorf("asciicast: writing the header: it has %d bytes and may have %d: shorten Command, Title or Env", len(line), maxLine)
	}
	c := &Writer{w: w}
	if err := c.write(line); err != nil {
		return nil, err
	}
	return c, nil
}

// Output records what the program has printed, any bytes at all. The start of a rune
// at the end of p is kept for the next call; each byte that is no UTF-8 becomes
// U+FFFD. An event is never before the one that was written last: at is that one's
// then.
func (c *Writer) Output(at time.Duration, p []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	if len(c.cut) > 0 {
		p = append(c.cut, p...)
	}
	whole := runes.Whole(p)
	text := p[:whole]
	c.cut = bytes.Clone(p[whole:])
	for len(text) > 0 {
		n := len(text)
		if n > maxData {
			n = runes.Whole(text[:maxData])
		}
		if err := c.event(at, Output, string(text[:n])); err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// Resize records that the terminal has another size, in characters. Neither may be 0.
func (c *Writer) Resize(at time.Duration, cols, rows uint16) error {
	if cols == 0 || rows == 0 {
		return fmt.Errorf("asciicast: a terminal of %dx%d cannot be played: leave it out", cols, rows)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	return c.event(at, Resize, fmt.Sprintf("%dx%d", cols, rows))
}

// Marker records a place that players can go to. The label may be empty; it may
// have 64 KiB.
func (c *Writer) Marker(at time.Duration, label string) error {
	if len(label) > maxData {
		return fmt.Errorf("asciicast: the label of a marker has %d bytes and may have %d: shorten it", len(label), maxData)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.usable(); err != nil {
		return err
	}
	return c.event(at, Marker, label)
}

// Close records the rest of the output, a rune that was never completed. It does not
// close the io.Writer. Further calls return what the first has, and those of other
// methods an error that is os.ErrClosed.
func (c *Writer) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return c.err
	}
	c.closed = true
	rest := string(c.cut)
	c.cut = nil
	if c.err != nil || rest == "" {
		return c.err
	}
	return c.event(c.last, Output, rest)
}

func (c *Writer) usable() error {
	if c.err == nil && c.closed {
		return fmt.Errorf("asciicast: writing an event: %w", os.ErrClosed)
	}
	return c.err
}

// event writes a line. A time is written in microseconds, as asciinema does.
func (c *Writer) event(at time.Duration, code Code, data string) error {
	c.last = max(c.last, at.Truncate(time.Microsecond))
	seconds := fmt.Sprintf("%d.%06d", c.last/time.Second, c.last%time.Second/time.Microsecond)
	line, err := encode([]any{json.Number(seconds), code, data})
	if err != nil {
		return fmt.Errorf("asciicast: writing an event: %w", err)
	}
	return c.write(line)
}

func (c *Writer) write(line []byte) error {
	if _, err := c.w.Write(line); err != nil {
		c.err = fmt.Errorf("asciicast: writing a line: %w", err)
	}
	return c.err
}

// encode returns v in a line. It makes U+FFFD of each byte that is no UTF-8.
func encode(v any) ([]byte, error) {
	var line bytes.Buffer
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false) // It is for terminals.
	err := enc.Encode(v)
	return line.Bytes(), err
}
