package screen

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Limits of what comes in strings.
const (
	maxString = maxLink + 1024
	maxTitle  = 1024
	maxLink   = 2083 // As VTE has it.
	maxTitles = 8
)

// command does what an OSC says. All other strings are dropped: images, the titles of
// screen(1), and what is between other terminals and their programs.
func (e *Emulator) command() {
	if e.parser.kind != ']' {
		return
	}
	number, text, _ := bytes.Cut(e.str, []byte(";"))
	switch string(number) {
	case "0", "2":
		e.title = clean(text, maxTitle)
	case "8":
		_, url, ok := bytes.Cut(text, []byte(";"))
		x := e.extra()
		x.link = ""
		if ok && len(url) <= maxLink && len(e.str) <= maxString {
			x.link = clean(url, maxLink)
		}
		e.setExtra(x)
	}
}

// clean returns the text without what is not to be seen or not UTF-8, cut to a number of bytes.
func clean(text []byte, most int) string {
	var b strings.Builder
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		text = text[n:]
		if !visible(r) {
			continue
		}
		if b.Len()+utf8.RuneLen(r) > most {
			break
		}
		b.WriteRune(r)
	}
	return b.String()
}

// window keeps titles (CSI 22 t, CSI 23 t), as editors do for theirs. Nothing else can be done to
// a window that is not there.
func (e *Emulator) window() {
	p := &e.parser
	if which := p.param(1, 0); which != 0 && which != 2 {
		return
	}
	switch p.param(0, 0) {
	case 22:
		if len(e.titles) == maxTitles {
			e.titles = append(e.titles[:0], e.titles[1:]...)
		}
		e.titles = append(e.titles, e.title)
	case 23:
		if n := len(e.titles); n > 0 {
			e.title, e.titles = e.titles[n-1], e.titles[:n-1]
		}
	}
}
