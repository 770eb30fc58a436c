package mcpserver

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// shown is a part of an output as a model gets it.
type shown struct {
	text    string
	omitted int64 // bytes that the command printed, and that are not in it
	binary  bool  // it is no text
	changed bool  // something was taken out that raw keeps, escape sequences for one
}

// mostLines bounds an answer: a host keeps the first 2000 lines of one, and drops the end.
const mostLines = 1500

// show makes at most limit bytes, and mostLines lines, of a stream: its beginning and its end,
// with a line between them that says what is missing and how to get it.
func show(o command.Output, limit int, raw bool, get func(offset int64) string) shown {
	s := shown{omitted: o.Omitted(), binary: o.Binary()}
	kept := append(bytes.Clone(o.Head), o.Tail...)
	if !raw && bytes.IndexByte(kept, 0) >= 0 {
		limit = min(limit, binaryShown)
	}
	if s.omitted == 0 {
		if s.text = plain(kept, raw); len(s.text) <= limit && strings.Count(s.text, "\n") <= mostLines {
			s.changed = s.text != string(kept)
			return s
		}
	} else if head, tail := plain(o.Head, raw), plain(o.Tail, raw); len(head)+len(tail) <= limit && strings.Count(head+tail, "\n") <= mostLines {
		s.text = head + gap(s.omitted, get(int64(len(o.Head)))) + tail
		return s
	}
	// What is cut is what was printed, so that offsets are true. There may be less of it
	// to see than there is room for.
	for room := limit; ; room = room * 3 / 4 {
		head := runes.FirstLines(lines(kept[:min(room/2, len(o.Head))], false), mostLines/2)
		tail := runes.LastLines(lines(kept[len(kept)-min(room/2, len(kept)-len(head)):], true), mostLines/2)
		before, after := plain(head, raw), plain(tail, raw)
		if len(before)+len(after) > limit { // What is no UTF-8 takes more room than it had.
			continue
		}
		s.omitted = o.Total - int64(len(head)) - int64(len(tail))
		s.text = before + gap(s.omitted, get(int64(len(head)))) + after
		return s
	}
}

// binaryShown is how much is shown of what is no text for certain: enough to see what it is.
const binaryShown = 512

func gap(omitted int64, get string) string {
	return fmt.Sprintf("\n[%d bytes are left out here: %s]\n", omitted, get)
}

// lines cuts what is no whole line off the end, or the beginning, unless too much would go
// with it; then what is no whole character.
func lines(b []byte, atBeginning bool) []byte {
	if atBeginning {
		if i := bytes.IndexByte(b, '\n'); i >= 0 && i < len(b)/2 {
			return b[i+1:]
		}
		return b[runes.BrokenStart(b):]
	}
	if i := bytes.LastIndexByte(b, '\n'); i > len(b)/2 {
		return b[:i+1]
	}
	return b[:runes.Whole(b)]
}

// plain is output for a model: lines as a terminal would leave them where a program
// redraws them, as for progress, without escape sequences; valid UTF-8. Raw output is
// only made valid.
func plain(b []byte, raw bool) string {
	if raw {
		return strings.ToValidUTF8(string(b), "�")
	}
	var text strings.Builder
	for line := range bytes.Lines(b) {
		body, ended := bytes.CutSuffix(line, []byte("\n"))
		text.WriteString(screen.Redrawn(body))
		if ended {
			text.WriteByte('\n')
		}
	}
	return text.String()
}
