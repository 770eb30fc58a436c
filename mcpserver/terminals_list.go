package mcpserver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/terminal"
)

// terminalsIn is what terminal_list is asked.
type terminalsIn struct {
	Session      string `json:"session,omitempty" jsonschema:"Only those of this session. Default: those of all."`
	State        string `json:"state,omitempty" jsonschema:"Default: all." enum:"running,finished,all"`
	MaxTerminals int    `json:"max_terminals,omitempty" jsonschema:"At most so many: those that run, and then those that ended last. Default: 50." min:"1" max:"1000"`
}

// terminalsOut is what terminal_list returns.
type terminalsOut struct {
	Terminals []terminalOut `json:"terminals" jsonschema:"The oldest first."`
	Omitted   int           `json:"omitted,omitempty" jsonschema:"So many more are left out: see max_terminals."`
}

// mostListed is how many terminals a list has, unless the call says otherwise.
const mostListed = 50

func listTerminals(ctx context.Context, c *call, in terminalsIn) (terminalsOut, error) {
	out := terminalsOut{Terminals: []terminalOut{}}
	in.Session = c.server.named(in.Session)
	list, err := c.server.terminals()
	if err != nil {
		return out, err
	}
	list = slices.DeleteFunc(list, func(info terminal.Info) bool {
		ended := info.State.Ended()
		return in.Session != "" && info.Session != in.Session || in.State == "running" && ended || in.State == "finished" && !ended
	})
	if most := cmp.Or(in.MaxTerminals, mostListed); len(list) > most {
		out.Omitted = len(list) - most
		// The ones that are left out are the first of these.
		slices.SortStableFunc(list, func(a, b terminal.Info) int {
			switch ended := a.State.Ended(); {
			case ended == b.State.Ended():
				return a.Ended.Compare(b.Ended)
			case ended:
				return -1
			}
			return 1
		})
		list = list[out.Omitted:]
		slices.SortStableFunc(list, func(a, b terminal.Info) int { return a.Created.Compare(b.Created) })
	}
	for _, info := range list {
		if info.State.Ended() && ctx.Err() == nil {
			c.seen(info.ID)
		}
		out.Terminals = append(out.Terminals, terminalOf(info))
	}
	return out, nil
}

func (o terminalsOut) text() string {
	if len(o.Terminals) == 0 {
		return "there are no such terminals; terminal_create makes one"
	}
	var text strings.Builder
	if o.Omitted > 0 {
		fmt.Fprintf(&text, "[%d more are left out: see max_terminals, session and state]\n", o.Omitted)
	}
	for _, t := range o.Terminals {
		fmt.Fprintf(&text, "%s, session %s, in %s, %.3g s: %s", t, t.Session, t.Dir, t.ElapsedSeconds, t.Command)
		if t.LastLine != "" {
			fmt.Fprintf(&text, "; last line: %s", t.LastLine)
		}
		text.WriteByte('\n')
	}
	return strings.TrimSuffix(text.String(), "\n")
}
