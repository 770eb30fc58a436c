package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/limpet-sh/limpet/terminal"
)

// captureIn is what terminal_capture is asked.
type captureIn struct {
	Terminal   string `json:"terminal" jsonschema:"Its id."`
	Scrollback *int   `json:"scrollback_lines,omitempty" jsonschema:"So many of the last lines that have left the screen, and those on it. Default: 200." min:"0" max:"1000000"`
	MaxOutput  int    `json:"max_output_bytes,omitempty" jsonschema:"With scrollback_lines: how much text to return; of more, the end. Default: 16384." min:"256" max:"32768"`
	Offset     *int64 `json:"offset,omitempty" jsonschema:"Instead: read the text of what was printed from this byte on; negative counts from the end."`
	Bytes      int    `json:"bytes,omitempty" jsonschema:"With offset: so many bytes of it. Default: 16384." min:"1" max:"32768"`
}

// captureOut is what terminal_capture returns.
type captureOut struct {
	Terminal     terminalOut `json:"terminal"`
	Text         string      `json:"text"`
	OmittedLines int         `json:"omitted_lines,omitempty" jsonschema:"So many lines above text are kept and not in it."`
	Offset       *int64      `json:"offset,omitempty" jsonschema:"Of the first byte of text in what was printed."`
	NextOffset   *int64      `json:"next_offset,omitempty" jsonschema:"Where the rest begins."`
	MissedBytes  int64       `json:"missed_bytes,omitempty" jsonschema:"So many bytes before text were asked for and are not kept any more."`
	Notices      []string    `json:"notices,omitempty" jsonschema:"What else has happened in the session."`

	normal bool // the lines above those of a full-screen program's screen are not its own
}

const defaultScrollback = 200

// checkCapture says what cannot be meant.
func (*Server) checkCapture(in *captureIn) (wrong problems) {
	wrong.when((in.Offset != nil || in.Bytes > 0) && (in.Scrollback != nil || in.MaxOutput > 0), "offset bytes scrollback_lines max_output_bytes",
		`only one of "offset" with "bytes", and "scrollback_lines" with "max_output_bytes" can be used`)
	return wrong
}

func captureTerminal(ctx context.Context, c *call, in captureIn) (out captureOut, err error) {
	t, err := c.server.terminal(in.Terminal)
	if err != nil {
		return out, err
	}
	info := t.Info()
	if in.Offset != nil || in.Bytes > 0 {
		err = out.read(t, in, c.server.opts.AnswerLimit)
	} else {
		most := defaultScrollback
		if in.Scrollback != nil {
			most = *in.Scrollback
		}
		err = out.lines(t, most, cmp.Or(in.MaxOutput, c.server.opts.AnswerLimit))
	}
	if err != nil {
		return out, err
	}
	out.Terminal, out.Notices = c.toldOf(ctx, info)
	return out, nil
}

// read reads a part of what was printed, as text.
func (out *captureOut) read(t *terminal.Terminal, in captureIn, limit int) error {
	from := int64(0)
	if in.Offset != nil {
		from = *in.Offset
	}
	if total := t.Info().Bytes; from > total {
		return badArgument(`"offset" is %d, and the program has printed %d bytes`, from, total)
	}
	text, err := t.Text(from, cmp.Or(in.Bytes, limit))
	if err != nil {
		return err
	}
	out.Text, out.Offset, out.NextOffset, out.MissedBytes = plain([]byte(text.Text), false), &text.Offset, &text.Next, text.Missed
	return nil
}

// lines reads the scrollback and the screen.
func (out *captureOut) lines(t *terminal.Terminal, most, limit int) error {
	above, now, err := pages(t)
	if err != nil {
		return err
	}
	lines := above[max(0, len(above)-most):]
	out.normal = now.Alternate && len(lines) > 0
	if text := now.Text(); text != "" {
		lines = append(lines[:len(lines):len(lines)], strings.Split(text, "\n")...)
	}
	if size(lines) > limit {
		for i := range lines {
			lines[i] = cut(lines[i], limit)
		}
		lines = lines[len(lines)-fitting(lines, limit, true):]
	}
	out.Text = strings.Join(lines, "\n")
	out.OmittedLines = len(above) + now.Rows - blank(now) - len(lines)
	return nil
}

// blank is how many rows at the end of a screen are empty.
func blank(s terminal.Snapshot) (n int) {
	for n < s.Rows && s.Line(s.Rows-1-n) == "" {
		n++
	}
	return n
}

// pages returns the lines that have left the screen, and the screen, of one moment; of one
// that prints all the time, nearly so.
func pages(t *terminal.Terminal) (above []string, now terminal.Snapshot, err error) {
	before, err := t.Screen()
	for range 5 {
		if err == nil {
			above, err = t.Scrollback()
		}
		if err == nil {
			now, err = t.Screen()
		}
		if err != nil || now.Offset == before.Offset {
			break
		}
		before = now
	}
	return above, now, err
}

func (o captureOut) text() string {
	lines := []string{o.Terminal.String()}
	if o.OmittedLines > 0 {
		lines = append(lines, fmt.Sprintf("%d lines above this are left out: see scrollback_lines and max_output_bytes", o.OmittedLines))
	}
	if o.normal {
		lines = append(lines, "a full-screen program shows the last lines; those above were there before it")
	}
	if o.MissedBytes > 0 {
		lines = append(lines, fmt.Sprintf("%d bytes before this are not kept any more", o.MissedBytes))
	}
	if o.Offset != nil {
		line := fmt.Sprintf("bytes %d to %d of %d", *o.Offset, *o.NextOffset, max(o.Terminal.OutputBytes, *o.NextOffset))
		if *o.NextOffset < o.Terminal.OutputBytes {
			line += fmt.Sprintf("; the rest: offset %d", *o.NextOffset)
		}
		lines = append(lines, line)
	}
	return body(o.Text) + remarks(append(lines, o.Notices...)...)
}
