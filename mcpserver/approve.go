package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/shell"
)

// Caller is the call of a tool, for a [session.Approver] that is asked about what the call wants.
type Caller struct{ c *call }

type callerKey struct{}

// CallerOf returns the call that a context belongs to. It is not ok where none does, as when something else than an agent uses the
// session.
func CallerOf(ctx context.Context) (_ Caller, ok bool) {
	c, ok := ctx.Value(callerKey{}).(*call)
	return Caller{c}, ok
}

// Client is the name that the client gives itself, and its version; empty if it has said neither.
func (c Caller) Client() string {
	params := c.c.request.Session.InitializeParams()
	if params == nil || params.ClientInfo == nil {
		return ""
	}
	return strings.TrimSpace(params.ClientInfo.Name + " " + params.ClientInfo.Version)
}

// Stdin is what the command of the call would read; empty if there is nothing.
func (c Caller) Stdin() string { return c.c.stdin }

// Within is how long an answer to a question may take: most, or less if the client gives the call up soon.
func (c Caller) Within(most time.Duration) time.Duration {
	if soon, hurried := c.c.hurried(); hurried {
		return min(most, soon/2) // The other half is the command's: see requestOf.
	}
	return most
}

// Waits has the client told what the call waits for, if it wants to know, until done is called.
func (c Caller) Waits(what string) (done func()) {
	c.c.waitsFor.Store(&what)
	return func() { c.c.waitsFor.Store(nil) }
}

// ErrNoChoice means that a person was asked by the client, and has chosen nothing, or that the client cannot ask.
var ErrNoChoice = errors.New("mcpserver: nothing was chosen")

// Elicit has the client show its user a message, and returns which of the choices the user has made. That somebody looked away, or
// that the client has accepted for them without a choice, is ErrNoChoice. It waits as long as ctx lasts, but for clients with
// [Caller.Rounds].
func (c Caller) Elicit(ctx context.Context, message string, choices ...string) (string, error) {
	form := &mcp.ElicitParams{
		Mode: "form", Message: message,
		RequestedSchema: map[string]any{
			"type": "object", "required": []string{choiceField},
			"properties": map[string]any{choiceField: map[string]any{"type": "string", "title": "Answer", "enum": choices}},
		},
	}
	if c.Rounds() {
		return c.c.elicitByRounds(ctx, form, choices)
	}
	res, err := c.c.request.Session.Elicit(ctx, form)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoChoice, err)
	}
	return chosen(res, choices)
}

// choiceField is that of the choice in a form.
const choiceField = "answer"

// manyRefusals is how many questions in a row without a yes tell a model to stop asking.
const manyRefusals = 3

// notApproved is what a model reads of what was not approved; nil if that is not what an error says.
func notApproved(err error) error {
	e, ok := errors.AsType[*approval.RefusedError](err)
	if !ok {
		return nil
	}
	why := err
	if r, ok := errors.AsType[*shell.RefusedError](err); ok {
		why = r.Err
	}
	next := "Do it in another way, or tell the user why it is needed."
	switch {
	case e.Refusals >= manyRefusals:
		next = fmt.Sprintf("That is question %d in a row without a yes: stop trying, and tell the user what is to be approved.", e.Refusals)
	case e.Nobody:
		next = "Go on with what needs no approval, or tell the user what is to be approved."
	}
	return fmt.Errorf("%w. Nothing ran. %s", why, next)
}

// approveInput asks about what is typed to a job or a terminal of a session.
func (c *call) approveInput(ctx context.Context, session, id, text string) error {
	if !c.server.sessions.Approves() {
		return nil
	}
	sess, err := c.server.open(ctx, &session) // It may be of a session of before.
	if err != nil {
		return err
	}
	if err := sess.Approve(ctx, id, text); err != nil {
		return refused(err)
	}
	return nil
}
