package page

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// mostTerminals bounds the list of a session's terminals.
const mostTerminals = 200

// terminalJSON is one terminal of a list.
type terminalJSON struct {
	ID        string         `json:"id"`
	Command   string         `json:"command"` // its beginning
	Dir       string         `json:"dir"`
	Cols      int            `json:"cols"`
	Rows      int            `json:"rows"`
	State     terminal.State `json:"state"`
	Ended     bool           `json:"ended"`
	Exit      string         `json:"exit,omitempty"` // how it ended, in words
	ElapsedMS int64          `json:"elapsed_ms"`
	LastLine  string         `json:"last_line,omitempty"`
	Screen    string         `json:"screen,omitempty"` // what is on it, as text, of the last ones of a list
}

func toTerminalJSON(i terminal.Info) terminalJSON {
	out := terminalJSON{
		ID: i.ID, Command: i.Line, Dir: i.Dir, Cols: i.Size.Cols, Rows: i.Size.Rows, State: i.State, Ended: i.State.Ended(),
		ElapsedMS: i.Elapsed().Milliseconds(), LastLine: i.LastLine,
	}
	if out.Command == "" {
		out.Command = strings.Join(i.Argv, " ")
	}
	out.Command = cut(out.Command, mostBrief)
	switch {
	case i.Why != "":
		out.Exit = cut(i.Why, mostBrief)
	case i.Exit != nil && i.Exit.Signal != 0:
		out.Exit = fmt.Sprintf("ended by signal %d", int(i.Exit.Signal))
	case i.Exit != nil:
		out.Exit = fmt.Sprintf("exit code %d", i.Exit.Code)
	}
	return out
}

type terminalsJSON struct {
	Terminals []terminalJSON `json:"terminals"`
}

// listTerminals returns those that the process of the session has, the oldest first; for a share of one terminal that one.
func (h *Handler) listTerminals(ctx context.Context, as rights, of which) (any, error) {
	s, err := h.open(ctx, of)
	if err != nil {
		return nil, err
	}
	defer s.Disconnect()
	c := s.Terminals()
	defer closeClient(c)
	list, err := c.List(ctx)
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(one terminal.Info) bool {
		return !of.has(s, one.Created) || !as.allow(seeTerminal, of.name, one.ID)
	})
	out := terminalsJSON{Terminals: []terminalJSON{}}
	list = lastOf(list, mostTerminals)
	for _, one := range list {
		out.Terminals = append(out.Terminals, toTerminalJSON(one))
	}
	h.thumbnails(ctx, c, of, list, out.Terminals)
	return out, nil
}

func closeClient(c *remote.Client) { _ = c.Close() } // It cannot fail.

// serveTerminal answers with a WebSocket that shows a terminal: see socket.go. Its request has no token, as a browser could not send one
// with it: the first message has. Any other request is answered with a stream: see shown.go.
func (h *Handler) serveTerminal(w http.ResponseWriter, r *http.Request, as rights) {
	if !h.enter() {
		refuse(w, http.StatusServiceUnavailable, errClosed.Error())
		return
	}
	defer h.work.Done()
	if isSocket(r) {
		h.watch(w, r)
	} else {
		h.stream(w, r, as)
	}
}

// sizePause is how often a view looks whether its terminal has another size, or has ended.
const sizePause = time.Second
