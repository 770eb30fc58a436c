package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/limpet-sh/limpet/terminal"
)

// createIn is what terminal_create is asked.
type createIn struct {
	Command string   `json:"command,omitempty" jsonschema:"A line for bash, as: make menuconfig. Its terminal ends with it."`
	Argv    []string `json:"argv,omitempty" jsonschema:"Instead: a program and its arguments, as they are, without a shell. Neither: an interactive bash."`
	Session string   `json:"session,omitempty" jsonschema:"The session that it belongs to; it is made if there is none of that name. Default: default."`
	Dir     string   `json:"dir,omitempty" jsonschema:"Where it starts; relative to the session's directory. Default: that."`
	Columns int      `json:"columns,omitempty" jsonschema:"Default: 80." min:"1" max:"1000"`
	Rows    int      `json:"rows,omitempty" jsonschema:"Default: 24." min:"1" max:"500"`
	Settle  *float64 `json:"settle_seconds,omitempty" jsonschema:"Return when the program has printed something and then nothing for 0.15 s, and after so many seconds in any case. 0: at once. Default: 1." min:"0" max:"60"`
}

// checkCreate fills in what was left out, and says what cannot be meant.
func (*Server) checkCreate(in *createIn) (wrong problems) {
	wrong.when(in.Command != "" && in.Argv != nil, "command argv", `only one of "command" and "argv" can be used`)
	wrong.when(in.Argv != nil && (len(in.Argv) == 0 || in.Argv[0] == ""), "argv", `"argv" names no program: leave it out for bash`)
	if in.Command == "" && in.Argv == nil {
		in.Argv = []string{"bash"}
	}
	return wrong
}

// createTerminal starts a program on a terminal.
func createTerminal(ctx context.Context, c *call, in createIn) (screenOut, error) {
	none := func(err error) (screenOut, error) { return screenOut{}, err }
	spec := terminal.Spec{Line: in.Command, Argv: in.Argv, Dir: in.Dir, Size: terminal.Size{
		Cols: cmp.Or(in.Columns, terminal.DefaultSize.Cols), Rows: cmp.Or(in.Rows, terminal.DefaultSize.Rows),
	}}
	sess, err := c.server.open(ctx, &in.Session)
	if err != nil {
		return none(err)
	}
	if err := c.turn(ctx, sess); err != nil {
		return none(err)
	}
	var started atomic.Pointer[terminal.Terminal]
	stop := c.progress(ctx, func() string {
		if t := started.Load(); t != nil {
			return t.Info().LastLine
		}
		if info, _ := sess.Info(ctx); info.Running != "" {
			return "the session still runs " + held(info)
		}
		return ""
	})
	defer stop()
	t, err := sess.StartTerminal(ctx, spec)
	c.server.followed.changed()
	if err != nil {
		if at, ok := errors.AsType[*terminal.Error](err); ok && ctx.Err() == nil { // Else it is not started, as its client wants it.
			c.seen(at.ID) // That it has failed is told here.
		}
		return none(c.unreached(err))
	}
	started.Store(t)
	c.ifUnread(func() {
		if info := t.Info(); !info.State.Ended() { // Else its end is told.
			sess.Notify(fmt.Sprintf("a call was cancelled that has started terminal %s (%s): it runs on", info.ID, brief(commandOf(info))))
		}
	})
	settle(ctx, t, 0, patience(in.Settle))
	return c.screen(ctx, t)
}

// A program is taken for quiet when it has printed nothing for so long, and defaultSettle
// is how long that is waited for unless a call says otherwise.
const (
	quietFor      = 150 * time.Millisecond
	defaultSettle = time.Second
)

func patience(settleSeconds *float64) time.Duration {
	if settleSeconds == nil {
		return defaultSettle
	}
	return seconds(*settleSeconds)
}

// settle waits until a program has printed something behind an offset, and then nothing
// for a while; or for so long; or until it has ended, or ctx. It returns early where it
// cannot wait: the screen is asked for next, and that says what is wrong.
func settle(ctx context.Context, t *terminal.Terminal, from int64, most time.Duration) {
	if most <= 0 {
		return
	}
	deadline := time.Now().Add(most)
	first, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	v, err := t.Attach(from)
	if err != nil {
		return
	}
	_, _ = v.Next(first) // The end of the program, or of its time, ends the wait as well.
	if left := time.Until(deadline); left > 0 {
		_, _ = t.Wait(ctx, terminal.WaitOptions{Silence: quietFor, Timeout: left}) // As above.
	}
}
