package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/picture"
	"github.com/limpet-sh/limpet/terminal/screen"
)

// lookIn is what terminal_screen is asked.
type lookIn struct {
	Terminal string `json:"terminal" jsonschema:"Its id."`
	Format   string `json:"format,omitempty" jsonschema:"text (default), or png: the text, and a picture besides." enum:"text,png"`
	FirstRow int    `json:"first_row,omitempty" jsonschema:"Return the text from this row on: of a large screen not all fits into an answer. Default: 1." min:"1" max:"500"`
}

// screenOut is what the tools return that show a screen.
type screenOut struct {
	Terminal terminalOut `json:"terminal"`
	Screen   shownScreen `json:"screen"`
	Notices  []string    `json:"notices,omitempty" jsonschema:"What else has happened in the session."`

	image []byte
}

// shownScreen is a screen as answers have it.
type shownScreen struct {
	Text        string      `json:"text" jsonschema:"Its lines, without blanks at their ends and empty lines at the end."`
	Cursor      shownCursor `json:"cursor"`
	Title       string      `json:"title,omitempty" jsonschema:"That of the window, as the program set it."`
	Alternate   bool        `json:"alternate,omitempty" jsonschema:"A full-screen program shows it: what was there before comes back."`
	OmittedRows int         `json:"omitted_rows,omitempty" jsonschema:"So many rows with something on them are not in text."`
}

type shownCursor struct {
	Row     int  `json:"row" jsonschema:"From 1."`
	Column  int  `json:"column" jsonschema:"From 1."`
	Visible bool `json:"visible"`
}

func lookAtScreen(ctx context.Context, c *call, in lookIn) (screenOut, error) {
	none := func(err error) (screenOut, error) { return screenOut{}, err }
	t, err := c.server.terminal(in.Terminal)
	if err != nil {
		return none(err)
	}
	info := t.Info()
	s, err := t.Screen()
	if err != nil {
		return none(err)
	}
	out := screenOut{Screen: shownOf(s.Screen, in.FirstRow, c.server.opts.AnswerLimit)}
	if in.Format == "png" {
		var image bytes.Buffer
		if err := picture.PNG(&image, s.Screen); err != nil {
			return none(fmt.Errorf("drawing the screen: %w", err))
		}
		out.image = image.Bytes()
	}
	out.Terminal, out.Notices = c.toldOf(ctx, info)
	return out, nil
}

// screen is the answer that shows the screen of a terminal.
func (c *call) screen(ctx context.Context, t *terminal.Terminal) (screenOut, error) {
	info := t.Info()
	picture, err := t.Screen()
	if err != nil {
		return screenOut{}, err
	}
	out := screenOut{Screen: shownOf(picture.Screen, 0, c.server.opts.AnswerLimit)}
	out.Terminal, out.Notices = c.toldOf(ctx, info)
	return out, nil
}

func (o screenOut) pictures() []mcp.Content {
	if o.image == nil {
		return nil
	}
	return []mcp.Content{&mcp.ImageContent{Data: o.image, MIMEType: "image/png"}}
}

// shownOf is a screen for an answer, of which the text has at most limit bytes: from a row
// on, if one is named, and else its beginning and its end.
func shownOf(s *screen.Screen, first, limit int) shownScreen {
	out := shownScreen{Title: s.Title, Alternate: s.Alternate, Cursor: shownCursor{s.Cursor.Row + 1, s.Cursor.Col + 1, s.Cursor.Visible}}
	rows := make([]string, s.Rows)
	for i := range rows {
		rows[i] = s.Line(i)
	}
	for len(rows) > 0 && rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	from := min(max(first-1, 0), len(rows))
	head, tail := len(rows), len(rows) // The rows before head are shown, and from tail on.
	if size(rows[from:]) > limit {
		for i := range rows {
			rows[i] = cut(rows[i], limit/2)
		}
		room := limit
		if first == 0 {
			room = limit / 2
			tail -= fitting(rows, room, true)
		}
		head = from + fitting(rows[from:], room, false)
	}
	for _, row := range append(rows[:from:from], rows[head:tail]...) {
		if row != "" {
			out.OmittedRows++
		}
	}
	parts := rows[from:head:head]
	if head < tail {
		parts = append(parts, fmt.Sprintf("[rows %d to %d are left out here: terminal_screen with first_row %d]", head+1, tail, head+1))
	}
	out.Text = strings.Join(append(parts, rows[tail:]...), "\n")
	return out
}

// size is how long lines are as text.
func size(lines []string) (n int) {
	for _, line := range lines {
		n += len(line) + 1
	}
	return n
}

// fitting is how many lines at the beginning, or the end, have room; one at least.
func fitting(lines []string, room int, atEnd bool) (n int) {
	for used := 0; n < len(lines); n++ {
		line := lines[n]
		if atEnd {
			line = lines[len(lines)-1-n]
		}
		if used += len(line) + 1; used > room && n > 0 {
			break
		}
	}
	return n
}

// cut makes a line short enough.
func cut(line string, most int) string {
	if len(line) <= most {
		return line
	}
	return line[:runes.Whole([]byte(line[:most]))] + "…"
}

func (o screenOut) text() string { return o.Screen.text(o.Terminal, o.Notices...) }

// text is the screen, and a line on how it is, with others behind it.
func (s shownScreen) text(of terminalOut, more ...string) string {
	state := fmt.Sprintf("%s, cursor in row %d, column %d", of, s.Cursor.Row, s.Cursor.Column)
	if !s.Cursor.Visible {
		state += " (hidden)"
	}
	if s.Alternate {
		state += ", full-screen"
	}
	if s.Title != "" {
		state += fmt.Sprintf(", title %q", s.Title)
	}
	return body(s.Text) + remarks(append([]string{state}, more...)...)
}
