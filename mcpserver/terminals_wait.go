package mcpserver

import (
	"context"
	"fmt"
	"time"

	"github.com/limpet-sh/limpet/terminal"
)

// waitIn is what terminal_wait is asked.
type waitIn struct {
	Terminal string  `json:"terminal" jsonschema:"Its id."`
	Text     string  `json:"text,omitempty" jsonschema:"Until this is on the screen, within a line."`
	Pattern  string  `json:"pattern,omitempty" jsonschema:"Until the screen matches this regular expression (RE2), instead. ^ and $ are those of a line; lines have no blanks at their ends."`
	Gone     bool    `json:"gone,omitempty" jsonschema:"Until the text or pattern is not on the screen, instead."`
	Prompt   bool    `json:"prompt,omitempty" jsonschema:"Until the program waits for input, as the kernel says, or seems to: what is left of the cursor looks like a prompt."`
	Silence  float64 `json:"silence_seconds,omitempty" jsonschema:"Until the program has printed nothing for so many seconds." min:"0.001" max:"300"`
	From     int64   `json:"from_offset,omitempty" jsonschema:"What is on the screen counts only when something was printed behind this offset: the output_bytes of an answer from before something was typed. Default: at once." min:"0"`
	Timeout  float64 `json:"timeout_seconds,omitempty" jsonschema:"Wait no longer than so many seconds. Default: 30." min:"0.001"`
}

// waitOut is what terminal_wait returns.
type waitOut struct {
	Reason         string      `json:"reason" jsonschema:"What ended the wait." enum:"exited,matched,gone,silent,prompt,timeout,cancelled"`
	Match          string      `json:"match,omitempty" jsonschema:"What was found, or the prompt."`
	Terminal       terminalOut `json:"terminal"`
	Screen         shownScreen `json:"screen"`
	ElapsedSeconds float64     `json:"elapsed_seconds"`
	Notices        []string    `json:"notices,omitempty" jsonschema:"What else has happened in the session."`
}

// defaultWait is the timeout of a wait that names none, and longestMatch how
// much is shown of what was found.
const (
	defaultWait  = 30 * time.Second
	longestMatch = 1 << 10
)

// waitForTerminal waits for what is to come.
func waitForTerminal(ctx context.Context, c *call, in waitIn) (waitOut, error) {
	none := func(err error) (waitOut, error) { return waitOut{}, err }
	t, err := c.server.terminal(in.Terminal)
	if err != nil {
		return none(err)
	}
	stop := c.progress(ctx, func() string { return t.Info().LastLine })
	got, err := waitFor(ctx, t, in.options(c.patience(in.Timeout)))
	stop()
	out := waitOut{Reason: string(got.Reason), Match: cut(got.Match, longestMatch), ElapsedSeconds: rounded(got.Took)}
	if got.Reason == terminal.WaitInterrupted {
		out.Reason = "cancelled"
	} else if err != nil {
		return none(c.unreached(err))
	}
	shown, err := c.screen(ctx, t)
	if err != nil {
		return none(err)
	}
	out.Terminal, out.Screen, out.Notices = shown.Terminal, shown.Screen, shown.Notices
	return out, nil
}

// checkWait fills in what was left out, and says what cannot be meant.
func (s *Server) checkWait(in *waitIn) (wrong problems) {
	in.Timeout = s.longestWait(in.Timeout, defaultWait)
	wrong.when(in.Text != "" && in.Pattern != "", "text pattern",
		`only one of "text" and "pattern" can be used; a pattern can have alternatives, as in a|b`)
	wrong.when(in.Gone && in.Text == "" && in.Pattern == "", "gone text pattern", `"gone" goes with "text" or "pattern"`)
	wrong.matchable("pattern", in.Pattern)
	return wrong
}

func (in waitIn) options(timeout time.Duration) terminal.WaitOptions {
	o := terminal.WaitOptions{
		Text: in.Text, Gone: in.Gone, Silence: seconds(in.Silence), Prompt: in.Prompt, From: in.From, Timeout: timeout,
	}
	if in.Pattern != "" {
		o.Pattern = "(?m)" + in.Pattern // Models mean lines.
	}
	return o
}

// waitFor waits for as long as it is told, also where the registry has a bound for that.
func waitFor(ctx context.Context, t *terminal.Terminal, o terminal.WaitOptions) (terminal.Waited, error) {
	for began, now := time.Now(), o; ; now.Timeout = max(o.Timeout-time.Since(began), time.Millisecond) {
		got, err := t.Wait(ctx, now)
		if err != nil || got.Reason != terminal.WaitTimeout || !got.Clamped {
			got.Took = time.Since(began)
			return got, err
		}
	}
}

func (o waitOut) text() string {
	verdict := "waited: " + o.Reason
	switch o.Reason {
	case string(terminal.WaitTimeout):
		verdict += "; the program runs on: wait again, or look at what it does"
	case string(terminal.WaitMatched), string(terminal.WaitPrompt):
		verdict += fmt.Sprintf(" %q", o.Match)
	}
	return o.Screen.text(o.Terminal, append([]string{fmt.Sprintf("%s, after %.3g s", verdict, o.ElapsedSeconds)}, o.Notices...)...)
}
