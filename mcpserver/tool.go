package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/session"
)

// tool is one that clients can call.
type tool[In any, Out answer] struct {
	name, title, description string
	effect                   effect
	arguments                map[string]string                // what is said of some arguments in the place of the tag "jsonschema"
	example                  string                           // the arguments of a call
	always                   bool                             // a host that defers tools is to show this one at once
	check                    func(s *Server, in *In) problems // fills in what was left out; nil: there is nothing to do
	call                     func(ctx context.Context, c *call, in In) (Out, error)
}

// answer is what a tool returns. As JSON it is the structured content of the result, with
// [Options.Structured].
type answer interface {
	// text has all of it that a model needs: most hosts give it nothing else.
	text() string
}

// annotated is an answer with fields for programs, which go into the _meta of its result. In some
// hosts a model writes programs that call the tools, and these can read _meta.
type annotated interface{ meta() mcp.Meta }

// illustrated is an answer that has pictures besides.
type illustrated interface{ pictures() []mcp.Content }

// effect is what a tool does to the world, for hosts that ask their users.
type effect int

const (
	looks    effect = iota // reads, and changes nothing
	adds                   // makes or changes something of limpet's own
	destroys               // ends something
	runs                   // runs what it is told, which may do anything
)

func (e effect) annotations(title string) *mcp.ToolAnnotations {
	world, harm := e == runs, e == runs || e == destroys
	return &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: e == looks, DestructiveHint: &harm, IdempotentHint: e == looks, OpenWorldHint: &world,
	}
}

// call is one call of a tool.
type call struct {
	server  *Server
	request *mcp.CallToolRequest

	stdin    string                 // what its command reads
	waitsFor atomic.Pointer[string] // what holds it up, for its client
	unread   []func()               // put back what the answer tells once, should nobody read it
}

// ifUnread has something done if the call is cancelled before its answer is complete: nobody reads that then. What an answer
// tells once is to be put back so, for the next one. A look at the context before it is taken does not suffice.
func (c *call) ifUnread(do func()) { c.unread = append(c.unread, do) }

// notices takes what there is to tell of a session.
func (c *call) notices(sess *session.Session) []string {
	notices, putBack := sess.TakeNotices()
	c.ifUnread(putBack)
	for i, text := range notices {
		notices[i] = c.server.opts.Explain(errors.New(text))
	}
	return notices
}

// seen takes back the notice of the end of a job or a terminal, which the answer shows.
func (c *call) seen(id string) {
	c.server.sessions.Seen(id)
	c.ifUnread(func() { c.server.sessions.Unseen(id) })
}

// place notes that the answer tells where a session is: see places.told.
func (c *call) place(info session.Info) (named string, moved bool) {
	named, moved, undo := c.server.places.told(c.server.sessions, info)
	c.ifUnread(undo)
	return named, moved
}

// notify queues something to tell of a session, if it is there.
func (c *call) notify(session, text string) {
	if sess, err := c.server.sessions.Get(session); err == nil {
		sess.Notify(text)
	}
}

// complete decides whether the answer is one that is read. One that a server sends that is being closed may be read
// nevertheless: what it told once is told twice then, and not never.
func (c *call) complete(ctx context.Context) {
	if ctx.Err() == nil {
		return
	}
	for _, do := range c.unread {
		do()
	}
}

// add offers a tool.
func add[In any, Out answer](s *Server, t tool[In, Out]) {
	schemas := schemasOf[In]()
	for name, text := range t.arguments {
		schemas.in.Properties[name].Description = text
	}
	offered := &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.description, Annotations: t.effect.annotations(t.title), InputSchema: schemas.in,
	}
	if t.always {
		offered.Meta = mcp.Meta{"anthropic/alwaysLoad": true} // Claude Code reads it; the others keep it from their models.
	}
	if s.opts.Structured {
		offered.OutputSchema = schemaOf[Out]()
	}
	answers := func(ctx context.Context, c *call) (*mcp.CallToolResult, error) {
		var in In
		wrong := schemas.decode(c.request.Params.Arguments, &in, max(s.opts.MaxTimeout, DefaultMaxTimeout).Seconds())
		if t.check != nil {
			wrong = wrong.and(t.check(s, &in))
		}
		if len(wrong) > 0 {
			return failed(wrong.text(t.name, t.example)), nil
		}
		out, err := t.call(context.WithValue(ctx, callerKey{}, c), c, in)
		if needed, ok := errors.AsType[*inputNeeded](err); ok {
			return needed.result(), nil
		}
		if p, ok := errors.AsType[problem](err); ok {
			return failed(problems{p}.text(t.name, t.example)), nil
		}
		if err != nil {
			return failed(s.opts.Explain(err)), nil
		}
		return s.success(out)
	}
	s.mcp.AddTool(offered, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		ctx, free := s.bounded(ctx)
		defer free()
		c := &call{server: s, request: req}
		res, err := answers(ctx, c)
		res = s.masked(res)
		c.complete(ctx)
		return res, err
	})
}

// failed is the result of a call that did nothing, or did not do what it should. A model
// reads why, and can do something about it.
func failed(why string) *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: why}}}
}

func (s *Server) success(out answer) (*mcp.CallToolResult, error) {
	res := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: out.text()}}}
	if out, ok := out.(illustrated); ok {
		res.Content = append(res.Content, out.pictures()...)
	}
	if out, ok := out.(annotated); ok {
		res.Meta = out.meta()
	}
	if s.opts.Structured {
		fields, err := json.Marshal(out)
		if err != nil {
			return nil, fmt.Errorf("writing the result: %w", err)
		}
		res.StructuredContent = json.RawMessage(fields)
	}
	return res, nil
}

var errSessionClosed = errors.New("the session was closed meanwhile: its name can be used again, for a new one")

// refused is the error for a call that could not be carried out. A name that cannot be one
// is an argument that cannot be meant.
func refused(err error) error {
	switch {
	case errors.Is(err, session.ErrName):
		return badArgument("%v", err)
	case errors.Is(err, session.ErrClosed):
		return errSessionClosed
	}
	return cmp.Or(notApproved(err), err)
}

// brief names a command.
func brief(script string) string { return runes.Brief(script, 80) }
