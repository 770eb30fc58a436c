package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/session"
)

// tool is one that clients can call.
type tool[In any, Out answer] struct {
	name, title, description string
	effect                   effect
	call                     func(ctx context.Context, c *call, in In) (Out, error)
}

// answer is what a tool returns. As JSON it is the structured content of the result.
type answer interface {
	// text is the same for a model to read.
	text() string
}

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
}

// add offers a tool.
func add[In any, Out answer](s *Server, t tool[In, Out]) {
	schemas := schemasOf[In, Out]()
	s.tools[t.name] = schemas
	s.mcp.AddTool(&mcp.Tool{
		Name: t.name, Title: t.title, Description: t.description, Annotations: t.effect.annotations(t.title),
		InputSchema: schemas.in, OutputSchema: schemas.out,
	}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		var in In
		if err := schemas.decode(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		ctx, free := s.bounded(ctx)
		defer free()
		out, err := t.call(ctx, &call{s, req}, in)
		if err != nil {
			return s.failure(err)
		}
		return success(out)
	})
}

// schemas are those of a tool.
type schemas struct {
	in, out  *jsonschema.Schema
	resolved *jsonschema.Resolved // of in
}

// badArgument is an error of the protocol: arguments that cannot be meant (JSON-RPC 2.0,
// "Invalid params").
func badArgument(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// failure is the result of a call that did nothing, or did not do what it should. A model
// reads it, and can do something about it.
func (s *Server) failure(err error) (*mcp.CallToolResult, error) {
	if bad, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return nil, bad
	}
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: s.opts.Explain(err)}}}, nil
}

func success(out answer) (*mcp.CallToolResult, error) {
	structured, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("writing the result: %w", err)
	}
	res := &mcp.CallToolResult{StructuredContent: json.RawMessage(structured), Content: []mcp.Content{&mcp.TextContent{Text: out.text()}}}
	if out, ok := out.(illustrated); ok {
		res.Content = append(res.Content, out.pictures()...)
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
	return err
}

// brief names a command.
func brief(script string) string { return runes.Brief(script, 80) }
