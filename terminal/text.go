package terminal

import (
	"bytes"
	"strings"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// Text is consecutive output as a person reads it: without escape sequences and controls, and
// without what hides or turns around what is beside it; valid UTF-8, in lines that end with a
// newline. Tabs stay, and carriage returns that end no line, as those of a progress bar. Next is
// where the text behind it begins.
type Text struct {
	Offset int64  `json:"offset"`
	Next   int64  `json:"next"`
	Missed int64  `json:"missed,omitempty"` // bytes right before it that were asked for and are not kept any more
	Text   string `json:"text"`
}

// Text is [Terminal.Output] as text. It is cut between runes and sequences: so it may begin
// a little behind from, and end before most bytes, where others go on. What is no UTF-8 is
// U+FFFD. What was kept may begin within a sequence: so the text begins where it is known that
// none is under way. What a program has drawn over, or put elsewhere on the screen, is in it in the
// order in which it came: Screen and Scrollback are what there was to be seen.
func (t *Terminal) Text(from int64, most int) (Text, error) {
	d, err := t.seen("text")
	if err != nil {
		return Text{}, err
	}
	return d.text(from, max(most, 1)), nil
}

func (d *display) text(from int64, most int) Text {
	c := output(d, from, most)
	if at, known := d.known(c.Offset); known && c.Offset < at {
		later := output(d, at, most)
		later.Missed += c.Missed
		c = later
	}
	end, whole := d.cut(c.Offset, c.Data, false)
	if !whole && len(c.Data) == most { // A rune or a sequence that is longer than that.
		more := output(d, c.Offset, most+longestSequence)
		end, _ = d.cut(more.Offset, more.Data, true)
		c.Missed, c.Offset, c.Data = c.Missed+more.Missed, more.Offset, more.Data
	}
	begin := d.begins(c.Offset, c.Data[:end])
	return Text{
		Offset: c.Offset + int64(begin), Next: c.Offset + int64(end), Missed: c.Missed,
		Text: screen.PlainLines(c.Data[begin:end]),
	}
}

// longestSequence is how much more than it was asked for a Text may be.
const longestSequence = 16 << 10

// known returns the first offset of which it is known that no sequence is under way, unless it
// is before the one that is asked for; false if there is none.
func (d *display) known(offset int64) (int64, bool) {
	start, end := d.out.bounds()
	at := end
	if d.first != nil {
		at = d.first.offset
	} else if r, ok := d.out.resume(); ok {
		at = r.offset
	}
	if at <= max(start, offset) {
		return at, true
	}
	before := output(d, start, int(min(at-start, mostUnknown)))
	if n, ok := agreed(before.Data); ok {
		return before.Offset + int64(n), true
	}
	return at, at < end
}

// mostUnknown bounds what is looked at to find out what it is.
const mostUnknown = 64 << 10

// within has the beginnings of all that output can be cut in.
var within = []string{"", "\x1b", "\x1b(", "\x1b[", "\x1b[1 1", "\x1b]", "\x1b]\x1b", "\x1bP", "\xf0", "\xe0", "\xc2"}

// agreed returns how much of the output it takes until no sequence is under way, whatever it
// began in: it is seldom far behind the first ESC.
func agreed(data []byte) (int, bool) {
	at := bytes.IndexAny(data, "\x1b\x18\x1a") // Nothing else ends all strings.
	if at < 0 {
		return 0, false
	}
	scans := make([]screen.Scanner, len(within))
	for i, before := range within {
		scans[i].Scan([]byte(before), nil)
		scans[i].Scan(data[:at], nil)
	}
	for end := min(len(data), at+longestSequence); at < end; at++ {
		grounded := true
		for i := range scans {
			scans[i].Scan(data[at:at+1], nil)
			grounded = grounded && scans[i].Ground()
		}
		if grounded {
			return at + 1, true
		}
	}
	return 0, false
}

// begins returns how much at the beginning of the data belongs to a sequence that began
// before it.
func (d *display) begins(offset int64, data []byte) int {
	scan := d.scannerAt(offset)
	n := 0
	if start, _ := d.out.bounds(); offset == start && start > 0 {
		n = runes.BrokenStart(data)
	}
	for n < len(data) && !scan.Ground() {
		scan.Scan(data[n:n+1], nil)
		n++
	}
	return n
}

// cut returns how much of the data is whole: up to the end of its last rune or sequence, or
// of its first one. Without any, or where nothing follows that could end it, that is all. A
// carriage return may be half of a line's end.
func (d *display) cut(offset int64, data []byte, first bool) (n int, whole bool) {
	scan := d.scannerAt(offset)
	for i := range data {
		if scan.Scan(data[i:i+1], nil); scan.Ground() && data[i] != '\r' {
			if n = i + 1; first {
				return n, true
			}
		}
	}
	if _, end := d.out.bounds(); d.out.ended() && offset+int64(len(data)) >= end {
		return len(data), true
	}
	if n == 0 {
		return len(data), false
	}
	return n, true
}

// scannerAt returns a scanner in the state that it has at an offset.
func (d *display) scannerAt(offset int64) screen.Scanner {
	r := d.out
	r.mu.Lock()
	at := r.start() // Without any better knowledge it is taken for ground.
	for _, b := range r.blocks {
		if b.start != nil && b.start.offset <= offset {
			at = b.start.offset
		}
	}
	r.mu.Unlock()
	if d.first != nil && d.first.offset <= offset {
		at = max(at, d.first.offset)
	}
	var scan screen.Scanner
	for at < offset {
		from, data, _ := r.read(at)
		if from > at || len(data) == 0 {
			return screen.Scanner{} // It has left the ring meanwhile.
		}
		data = data[:min(int64(len(data)), offset-at)]
		scan.Scan(data, nil)
		at += int64(len(data))
	}
	return scan
}

// lastLine is the last line that is not blank, as a person would read it.
func (r *ring) lastLine() string {
	const look, most = 4 << 10, 200
	_, tail := r.tail(look)
	lines := strings.Split(screen.Plain(tail[runes.BrokenStart(tail):]), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimRight(lines[i], "\r ")
		line = line[strings.LastIndexByte(line, '\r')+1:] // What was written over it.
		line = strings.TrimSpace(strings.ReplaceAll(line, "\t", " "))
		if line != "" {
			if len(line) > most {
				line = line[:runes.Whole([]byte(line[:most]))]
			}
			return line
		}
	}
	return ""
}
