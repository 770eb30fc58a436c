package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/transport"
)

// terminalIn is what the tools are asked that want a terminal and no more.
type terminalIn struct {
	Terminal string `json:"terminal" jsonschema:"Its id, as terminal_create and terminal_list have it."`
}

// terminalOut is a terminal as answers have it.
type terminalOut struct {
	Terminal       string    `json:"terminal" jsonschema:"Its id."`
	Command        string    `json:"command"`
	Session        string    `json:"session"`
	Dir            string    `json:"dir" jsonschema:"Where the program was started."`
	State          string    `json:"state" jsonschema:"succeeded: exit code 0. failed: another code, a signal, or it could not be started. cancelled: it was killed, or its session closed." enum:"starting,running,succeeded,failed,cancelled,lost"`
	ExitCode       *int      `json:"exit_code,omitempty" jsonschema:"As bash has it: 128+n for signal n."`
	Signal         string    `json:"signal,omitempty"`
	Why            string    `json:"why,omitempty"`
	PID            int       `json:"pid,omitempty"`
	Columns        int       `json:"columns"`
	Rows           int       `json:"rows"`
	Started        time.Time `json:"started"`
	ElapsedSeconds float64   `json:"elapsed_seconds"`
	OutputBytes    int64     `json:"output_bytes" jsonschema:"How much it has printed in all."`
	LastLine       string    `json:"last_line,omitempty" jsonschema:"The last that it printed and that is not blank."`
	Waits          string    `json:"waits,omitempty" jsonschema:"What it waits for that is to be typed, as the kernel says."`
}

func (s *Server) addTerminals() {
	typing := &turns{}
	add(s, tool[createIn, screenOut]{
		name: "terminal_create", title: "Start a program on a terminal", effect: runs, check: (*Server).checkCreate, call: createTerminal,
		example: `{"command": "python3", "columns": 100, "rows": 30}`,
		description: "Start a program on a terminal of its own: for what run_command cannot do, as editors, REPLs, debuggers, ssh, pagers, menus and password prompts. " +
			"For anything else run_command is cheaper and has exit codes. Without command and argv it is an interactive bash. It starts in the session's directory, " +
			"with its exported variables, when the command that runs there has ended. It runs on until it ends, terminal_kill, or the end of the session. " +
			"The answer has the first screen, as soon as the program is quiet (see settle_seconds).",
	})
	add(s, tool[sendIn, screenOut]{
		name: "terminal_send_keys", title: "Type on a terminal", effect: runs, check: (*Server).checkSend,
		example: `{"terminal": "term-vim-4a7c", "keys": ["ls -l", "Enter"]}`,
		call:    func(ctx context.Context, c *call, in sendIn) (screenOut, error) { return sendKeys(ctx, c, typing, in) },
		description: "Type keys, text or a paste on a terminal, and return the screen as soon as the program is quiet behind that, so that no terminal_screen is needed. " +
			"A command line is typed as keys [\"ls -l\", \"Enter\"]. Each of the keys comes by itself, as from a person; behind C-c, C-z, C-\\ and Escape the rest waits until the program is quiet " +
			"(a second at most), since what comes right behind them is dropped, or taken for Alt. For what takes longer than settle_seconds: terminal_wait. " +
			"The answer costs what a screen does (80x24: up to 2 KB of text).",
	})
	add(s, tool[lookIn, screenOut]{
		name: "terminal_screen", title: "Look at a terminal", effect: looks, call: lookAtScreen,
		example: `{"terminal": "term-vim-4a7c"}`,
		description: "What a person would see on a terminal now, or at the end of its program. It is cheap and changes nothing; 80x24 is up to 2 KB of text. " +
			"For lines that have left the screen: terminal_capture. format png adds a picture with colors, some 1,500 tokens: for when the looks matter, as what is selected.",
	})
	add(s, tool[captureIn, captureOut]{
		name: "terminal_capture", title: "Read what a terminal has shown", effect: looks, check: (*Server).checkCapture, call: captureTerminal,
		example: `{"terminal": "term-vim-4a7c", "scrollback_lines": 500}`,
		description: "The lines that have left a terminal's screen at its top (the last 1000 are kept) and those on it, as text. " +
			"Or, by offset, the text of all that the program printed, in the order in which it came: the last MB of it is kept. It changes nothing. " +
			"200 lines are up to 16 KB of text: ask for what is needed.",
	})
	add(s, tool[waitIn, waitOut]{
		name: "terminal_wait", title: "Wait for something on a terminal", effect: looks, check: (*Server).checkWait, call: waitForTerminal,
		example: `{"terminal": "term-vim-4a7c", "text": "done", "timeout_seconds": 60}`,
		description: fmt.Sprintf("Wait until the screen of a terminal shows something (text, pattern), does not show it any more (gone), the program waits for input (prompt), "+
			"is silent, or has ended, which always ends the wait: the first of those that are asked for. What is on the screen already counts. "+
			"Use it instead of looking again and again. A timeout (30 s by default, %v at most) is an ordinary result, and the program runs on. The answer has the screen.", s.opts.MaxTimeout),
	})
	add(s, tool[resizeIn, resizedOut]{
		name: "terminal_resize", title: "Resize a terminal", effect: adds, call: resizeTerminal,
		example:     `{"terminal": "term-vim-4a7c", "columns": 120, "rows": 40}`,
		description: "Give a terminal another size; its program is told, and may draw its screen anew. Larger shows more at once, and costs more to read.",
	})
	add(s, tool[terminalIn, killedOut]{
		name: "terminal_kill", title: "End a program on a terminal", effect: destroys, call: killTerminal,
		example: `{"terminal": "term-vim-4a7c"}`,
		description: "End the program on a terminal, with all that it has started: first as if its terminal was closed, then by force, which takes 2 s at most. " +
			"What it has shown stays to be read. Where a program can be left by a key (C-d, q, :q!), prefer that.",
	})
	add(s, tool[terminalsIn, terminalsOut]{
		name: "terminal_list", title: "List terminals", effect: looks, call: listTerminals,
		example:     `{"state": "running"}`,
		description: "List the terminals with their programs, those that have ended too, with the last line of each. It is cheap.",
	})
}

// terminal returns the one of that id. Others may share the directory: theirs are not ours
// to reach.
func (s *Server) terminal(id string) (*terminal.Terminal, error) {
	r, err := s.sessions.Terminals()
	if err != nil {
		return nil, err
	}
	t, err := r.Get(id)
	if err != nil && !errors.Is(err, terminal.ErrNotFound) {
		return nil, err
	}
	if err == nil && t.Info().Owner == r.Owner() {
		return t, nil
	}
	list, err := s.terminals()
	if err != nil {
		return nil, err
	}
	var running []string
	for _, info := range list {
		if !info.State.Ended() {
			running = append(running, info.ID)
		}
	}
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("there is no terminal %q: there are none; terminal_create makes one", id)
	case len(running) == 0:
		return nil, fmt.Errorf("there is no terminal %q: none runs; terminal_list has those that ended, and terminal_create makes one", id)
	}
	const most = 10
	return nil, fmt.Errorf("there is no terminal %q: there run %s; terminal_list has all", id, strings.Join(running[max(0, len(running)-most):], ", "))
}

// terminals are those of this program, the oldest first.
func (s *Server) terminals() ([]terminal.Info, error) {
	r, err := s.sessions.Terminals()
	if err != nil {
		return nil, err
	}
	list, err := r.List()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(info terminal.Info) bool { return info.Owner != r.Owner() }), nil
}

func terminalOf(info terminal.Info) terminalOut {
	out := terminalOut{
		Terminal: info.ID, Command: brief(commandOf(info)), Session: info.Session, Dir: info.Dir, State: string(info.State), Why: info.Why, PID: info.PID,
		Columns: info.Size.Cols, Rows: info.Size.Rows, Started: cmp.Or(info.Started, info.Created), ElapsedSeconds: rounded(info.Elapsed()),
		OutputBytes: info.Bytes, LastLine: info.LastLine,
	}
	if w := info.Asks(); w != nil {
		out.Waits = w.String()
	}
	switch exit := info.Exit; {
	case exit == nil:
	case exit.Signal != 0:
		code := 128 + int(exit.Signal)
		out.ExitCode, out.Signal = &code, transport.SignalName(exit.Signal)
	case exit.Code >= 0:
		out.ExitCode = &exit.Code
	}
	return out
}

// commandOf is what runs on a terminal, as a person would have typed it.
func commandOf(info terminal.Info) string {
	return cmp.Or(info.Line, strings.Join(info.Argv, " "))
}

// toldOf is a terminal for an answer, with what there is to tell of its session. The end that
// it shows is no news any more. Of a call that was cancelled nobody may read the answer:
// then the news stay for the next one. Whoever shows more of the terminal takes the Info
// before that: an end that comes between is told next time.
func (c *call) toldOf(ctx context.Context, info terminal.Info) (out terminalOut, notices []string) {
	out = terminalOf(info)
	if info.State.Ended() {
		c.seen(info.ID)
	}
	if ctx.Err() != nil {
		return out, nil
	}
	return out, c.noticesOf(info.Session)
}

// unreached adds what a model can do about it to an error of a terminal.
func (c *call) unreached(err error) error {
	at, ok := errors.AsType[*terminal.Error](err)
	switch {
	case ok && errors.Is(err, terminal.ErrEnded):
		c.seen(at.ID)
		return fmt.Errorf("%w; terminal_screen has what it has shown last, and terminal_create starts another one", err)
	case errors.Is(err, terminal.ErrTooMany):
		return fmt.Errorf("%w: see terminal_list and terminal_kill", err)
	}
	return refused(err)
}

// String says in a line how the terminal is.
func (o terminalOut) String() string {
	text := fmt.Sprintf("terminal %s: %s", o.Terminal, o.State)
	if o.ExitCode != nil {
		text += fmt.Sprintf(", exit code %d", *o.ExitCode)
	}
	for _, more := range []string{o.Signal, o.Why} {
		if more != "" {
			text += ", " + more
		}
	}
	if o.PID != 0 {
		text += fmt.Sprintf(", pid %d", o.PID)
	}
	text += fmt.Sprintf(", %dx%d, %d bytes of output", o.Columns, o.Rows, o.OutputBytes)
	if o.Waits != "" {
		text += ", " + o.Waits
	}
	return text
}
