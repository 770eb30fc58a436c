package mcpserver

import (
	"context"
	"fmt"

	"github.com/limpet-sh/limpet/session"
)

// interruptIn is what interrupt is asked.
type interruptIn struct {
	Session string `json:"session,omitempty" jsonschema:"Default: default."`
}

// interruptOut is what interrupt returns.
type interruptOut struct {
	Session     string `json:"session"`
	Interrupted bool   `json:"interrupted" jsonschema:"false: no command ran."`
	Command     string `json:"command,omitempty" jsonschema:"What ran."`

	holder string // for whom
}

func interruptSession(ctx context.Context, c *call, in interruptIn) (interruptOut, error) {
	in.Session = c.server.sessionOr(in.Session)
	out := interruptOut{Session: in.Session}
	sess, err := c.server.sessions.Get(in.Session)
	if err != nil {
		return out, refused(err)
	}
	info, _ := sess.Info(ctx)
	out.Command, out.holder = info.Running, info.Holder
	out.Interrupted, err = sess.Interrupt(ctx)
	if err != nil {
		return out, refused(err)
	}
	return out, nil
}

func (o interruptOut) text() string {
	if !o.Interrupted {
		return fmt.Sprintf("no command runs in session %q", o.Session)
	}
	return fmt.Sprintf("interrupted in session %q: %s", o.Session, held(session.Info{Running: o.Command, Holder: o.holder}))
}
