package screen

import "bytes"

// history is the text of the lines that scrolled off, with a newline behind each. There
// are no newlines in them: no cell has a control character.
type history struct {
	text  []byte
	start int // what is before was dropped
	lines int
	limit int // of lines; there are no more bytes than it allows for lines of historyLine
}

// historyLine is generous: it bounds what a program can do with lines full of marks.
const historyLine = 1024

// end ends a line, whose text was appended to h.text.
func (h *history) end() {
	for len(h.text) > h.start && h.text[len(h.text)-1] == ' ' {
		h.text = h.text[:len(h.text)-1]
	}
	h.text = append(h.text, '\n')
	h.lines++
	for h.lines > h.limit || len(h.text)-h.start > h.limit*historyLine && h.lines > 1 {
		h.start += bytes.IndexByte(h.text[h.start:], '\n') + 1
		h.lines--
	}
	if h.start > len(h.text)/2 { // Each byte is moved once on average.
		h.text = h.text[:copy(h.text, h.text[h.start:])]
		h.start = 0
	}
}

func (h *history) clear() { h.text, h.start, h.lines = nil, 0, 0 }

func (h *history) all() []string {
	list := make([]string, 0, h.lines)
	for line := range bytes.Lines(h.text[h.start:]) {
		list = append(list, string(line[:len(line)-1]))
	}
	return list
}

// keep takes the text of a line that scrolls off.
func (e *Emulator) keep(l *line) {
	h := &e.history
	if h.limit <= 0 {
		return
	}
	if !l.uniform || l.fill.text != 0 {
		cells := l.row(e.size.Cols) // It is reused, and written to anew.
		for len(cells) > 0 && cells[len(cells)-1].text == 0 {
			cells = cells[:len(cells)-1]
		}
		for _, c := range cells {
			switch {
			case c.attr&tail != 0:
			case c.text == 0:
				h.text = append(h.text, ' ')
			case c.text < del:
				h.text = append(h.text, byte(c.text))
			default:
				h.text = append(h.text, e.text(c)...)
			}
		}
	}
	h.end()
}
