package mcpserver

import (
	"context"
	"fmt"

	"github.com/limpet-sh/limpet/terminal"
)

// resizeIn is what terminal_resize is asked.
type resizeIn struct {
	Terminal string `json:"terminal" jsonschema:"Its id."`
	Columns  int    `json:"columns" jsonschema:"How wide it is to be." min:"1" max:"1000"`
	Rows     int    `json:"rows" jsonschema:"How many lines it is to have." min:"1" max:"500"`
}

// resizedOut is what terminal_resize returns.
type resizedOut struct {
	Terminal terminalOut `json:"terminal"`
	Notices  []string    `json:"notices,omitempty" jsonschema:"What else has happened in the session."`
}

// killedOut is what terminal_kill returns.
type killedOut struct {
	Terminal terminalOut `json:"terminal"`
	Killed   bool        `json:"killed" jsonschema:"false: it had ended before."`
	Notices  []string    `json:"notices,omitempty" jsonschema:"What else has happened in the session."`
}

func resizeTerminal(ctx context.Context, c *call, in resizeIn) (resizedOut, error) {
	t, err := c.server.terminal(in.Terminal)
	if err != nil {
		return resizedOut{}, err
	}
	if err := t.Resize(terminal.Size{Cols: in.Columns, Rows: in.Rows}); err != nil {
		return resizedOut{}, c.unreached(err)
	}
	out, notices := c.toldOf(ctx, t.Info())
	return resizedOut{out, notices}, nil
}

func killTerminal(ctx context.Context, c *call, in terminalIn) (killedOut, error) {
	t, err := c.server.terminal(in.Terminal)
	if err != nil {
		return killedOut{}, err
	}
	ended := t.Info().State.Ended()
	if err := t.Close(); err != nil { // It also ends what one that has ended has left.
		return killedOut{}, err
	}
	c.server.followed.changed()
	info := t.Info()
	if !ended {
		c.ifUnread(func() {
			c.notify(info.Session, fmt.Sprintf("a call was cancelled that has ended terminal %s (%s)", info.ID, brief(commandOf(info))))
		})
	}
	out, notices := c.toldOf(ctx, info)
	return killedOut{out, !ended, notices}, nil
}

func (o resizedOut) text() string {
	return remarks(append([]string{o.Terminal.String()}, o.Notices...)...)
}

func (o killedOut) text() string {
	verdict := o.Terminal.String()
	if !o.Killed {
		verdict += "; it had ended before"
	}
	return remarks(append([]string{verdict}, o.Notices...)...)
}
