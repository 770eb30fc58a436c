package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/limpet-sh/limpet/terminal/screen"
)

// Text is consecutive output as a person reads it: without escape sequences, and valid
// UTF-8, in lines that end with a newline. Next is where the text behind it begins.
type Text struct {
	Offset int64  `json:"offset"`
	Next   int64  `json:"next"`
	Missed int64  `json:"missed,omitempty"` // bytes right before it that were asked for and are not kept any more
	Text   string `json:"text"`
}

// Text is [Terminal.Output] as text. It is cut between runes and sequences: so it may begin
// a little behind from, and end before most bytes, where others go on. What is no UTF-8 is
// U+FFFD. What a program has drawn over, or put elsewhere on the screen, is in it in the
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
	end, whole := d.cut(c.Offset, c.Data, false)
	if !whole && len(c.Data) == most { // A rune or a sequence that is longer than that.
		more := output(d, c.Offset, most+longestSequence)
		end, _ = d.cut(more.Offset, more.Data, true)
		c.Missed, c.Offset, c.Data = c.Missed+more.Missed, more.Offset, more.Data
	}
	begin := d.begins(c.Offset, c.Data[:end])
	return Text{
		Offset: c.Offset + int64(begin), Next: c.Offset + int64(end), Missed: c.Missed,
		Text: lineEnds.Replace(ansi.Strip(strings.ToValidUTF8(string(c.Data[begin:end]), "\uFFFD"))),
	}
}

// lineEnds makes those of files of those of terminals. A program may print its own, too.
var lineEnds = strings.NewReplacer("\r\r\n", "\n", "\r\n", "\n")

// longestSequence is how much more than it was asked for a Text may be.
const longestSequence = 16 << 10

// begins returns how much at the beginning of the data belongs to a sequence that began
// before it.
func (d *display) begins(offset int64, data []byte) int {
	scan := d.out.scannerAt(offset)
	n := 0
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
	scan := d.out.scannerAt(offset)
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
func (r *ring) scannerAt(offset int64) screen.Scanner {
	r.mu.Lock()
	at := r.start() // Without any better knowledge it is taken for ground.
	for _, b := range r.blocks {
		if b.start != nil && b.start.offset <= offset {
			at = b.start.offset
		}
	}
	r.mu.Unlock()
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
