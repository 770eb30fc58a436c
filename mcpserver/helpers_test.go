package mcpserver_test

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// host is a client that is connected to a server of its own, by pipes.
type host struct {
	t        testing.TB
	sessions *session.Registry
	server   *mcpserver.Server
	toServer *os.File
	*mcp.ClientSession
}

// setup says what a host is like. The zero value is fine.
type setup struct {
	sessions session.Options
	server   mcpserver.Options
	client   mcp.ClientOptions
	version  string // of the protocol
	plain    bool   // results are text, as models get them; else tests ask for fields besides

	before func(*session.Registry) // runs when there is no server yet; nil: nothing
}

// connect returns a host, with sessions in a directory of their own. All of it ends with
// the test.
func connect(t testing.TB, with setup) *host {
	t.Helper()
	if with.sessions.Shell == nil {
		with.sessions.Shell = &shell.Options{}
	}
	if with.sessions.Shell.Env == nil { // What a bash on a terminal reads at its start, and leaves behind, is not the user's.
		with.sessions.Shell.Env = append(shell.DefaultEnv(), "HOME="+testenv.TempDir(t))
	}
	if with.sessions.Shell.Dir == "" && with.sessions.Policy == nil {
		with.sessions.Shell.Dir = testenv.TempDir(t)
	}
	if with.sessions.Shell.RuntimeDir == "" {
		with.sessions.Shell.RuntimeDir = testenv.TempDir(t)
	}
	with.server.Structured = !with.plain
	sessions, err := session.New(&with.sessions)
	require.NoError(t, err)
	if with.before != nil {
		with.before(sessions)
	}
	server, err := mcpserver.New(sessions, &with.server)
	require.NoError(t, err)
	fromClient, toServer := pipe(t)
	fromServer, toClient := pipe(t)
	served := make(chan error, 1)
	go func() { served <- server.ServeStdio(context.Background(), fromClient, toClient) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &with.client)
	connection, err := client.Connect(testenv.Context(t), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, &mcp.ClientSessionOptions{ProtocolVersion: with.version})
	require.NoError(t, err)
	t.Cleanup(func() {
		_ = connection.Close()
		require.NoError(t, <-served)
		require.NoError(t, server.Close())
		require.NoError(t, sessions.Close())
	})
	return &host{t, sessions, server, toServer, connection}
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	return r, w
}

type object = map[string]any

// try calls a tool.
func (h *host) try(tool string, arguments object) (*mcp.CallToolResult, error) {
	return h.CallTool(testenv.Context(h.t), &mcp.CallToolParams{Name: tool, Arguments: arguments})
}

// call calls a tool that must do what it should, and returns what it says, as data and as
// text.
func (h *host) call(tool string, arguments object) (object, string) {
	h.t.Helper()
	res, err := h.try(tool, arguments)
	require.NoError(h.t, err)
	require.False(h.t, res.IsError, textOf(res))
	return structured(h.t, res), textOf(res)
}

// refuse calls a tool that must fail, and returns why.
func (h *host) refuse(tool string, arguments object) string {
	h.t.Helper()
	res, err := h.try(tool, arguments)
	require.NoError(h.t, err)
	require.True(h.t, res.IsError, textOf(res))
	return textOf(res)
}

// bad calls a tool with arguments that cannot be meant, and returns what is said of them.
func (h *host) bad(tool string, arguments object) string {
	h.t.Helper()
	text := h.refuse(tool, arguments)
	require.Regexp(h.t, `^nothing was done(: |, as \d+ things)`, text)
	require.Contains(h.t, text, "\nA right call of "+tool+": {")
	return text
}

// run runs a command in a session and returns what came of it.
func (h *host) run(session, command string) object {
	h.t.Helper()
	out, _ := h.call("run_command", object{"session": session, "command": command})
	return out
}

func structured(t testing.TB, res *mcp.CallToolResult) object {
	t.Helper()
	b, err := json.Marshal(res.StructuredContent)
	require.NoError(t, err)
	var out object
	require.NoError(t, json.Unmarshal(b, &out))
	return out
}

// textOf is the text of a result.
func textOf(res *mcp.CallToolResult) string {
	for _, content := range res.Content {
		if text, ok := content.(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

// fits returns why a value does not fit a schema.
func fits(schema any, value object) error {
	b, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		return err
	}
	return resolved.Validate(value)
}
