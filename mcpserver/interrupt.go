package mcpserver

import (
	"context"
	"fmt"
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
}

func interruptSession(ctx context.Context, c *call, in interruptIn) (interruptOut, error) {
	in.Session = c.server.sessionOr(in.Session)
	out := interruptOut{Session: in.Session}
	sess, err := c.server.sessions.Get(in.Session)
	if err != nil {
		return out, refused(err)
	}
	out.Command = running(ctx, sess)
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
	return fmt.Sprintf("interrupted in session %q: %s", o.Session, brief(o.Command))
}
