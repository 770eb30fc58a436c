package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
)

// chat is a program that says something, and then more with each Enter.
const chat = `stty -echo; printf 'loading\n'; read; printf '\e[H\e[2Jdone: 42\nname? '; read; printf '\nbye\n'; exit 5`

func TestWhatATerminalIsWaitedFor(t *testing.T) {
	testenv.Slow(t)
	// Longer waits than the registry's are put together.
	d := newDesk(t, setup{sessions: session.Options{Terminals: &terminal.Options{MaxWait: 400 * time.Millisecond}}})
	id, _ := d.create(object{"command": chat})
	wait := func(reason string, with object) object {
		t.Helper()
		with["terminal"] = id
		return d.waited(reason, with)
	}
	out := wait("matched", object{"text": "load"})
	assert.Equal(t, "load", out["match"])
	assert.Equal(t, "loading", shown(out))
	wait("silent", object{"silence_seconds": 0.01})
	before := number(of(out), "output_bytes")

	out, text := d.call("terminal_wait", object{"terminal": id, "text": "never", "timeout_seconds": 0.6})
	assert.Equal(t, "timeout", out["reason"])
	assert.GreaterOrEqual(t, out["elapsed_seconds"], 0.6)
	assert.Contains(t, text, "loading\n[terminal "+id+": running, ")
	assert.Contains(t, text, "[waited: timeout; the program runs on")
	out, _ = d.call("terminal_wait", object{"terminal": id, "text": "loading", "from_offset": before, "timeout_seconds": 0.2})
	assert.Equal(t, "timeout", out["reason"], "that was there before")

	d.call("terminal_send_keys", object{"terminal": id, "keys": []string{"Enter"}, "settle_seconds": 0})
	wait("gone", object{"text": "loading", "gone": true})
	out = wait("matched", object{"pattern": `^done: \d+$`, "from_offset": before})
	assert.Equal(t, "done: 42", out["match"])
	out = wait("prompt", object{"prompt": true, "text": "never"})
	assert.Equal(t, "name?", out["match"])
	d.keys(id, "Enter")
	out = wait("exited", object{"text": "never", "prompt": true})
	assert.EqualValues(t, 5, of(out)["exit_code"])
	assert.Contains(t, shown(out), "bye")
	wait("matched", object{"text": "bye"})
}

// A call that is cancelled returns what there is, and takes no news: nobody may read it.
func TestAWaitThatIsCancelledReturnsTheScreen(t *testing.T) {
	testenv.Slow(t)
	sessions, err := session.New(nil)
	require.NoError(t, err)
	server, err := mcpserver.New(sessions, &mcpserver.Options{Structured: true, Progress: 10 * time.Millisecond})
	require.NoError(t, err)
	fromClient, toServer := pipe(t)
	fromServer, toClient := pipe(t)
	served := make(chan error, 1)
	go func() { served <- server.ServeStdio(context.Background(), fromClient, toClient) }()
	answers := bufio.NewReader(fromServer)
	ask := func(id int, method string, params object) {
		b, err := json.Marshal(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
		require.NoError(t, err)
		_, err = fmt.Fprintf(toServer, "%s\n", b)
		require.NoError(t, err)
	}
	type message struct {
		ID     int
		Method string
		Result struct{ StructuredContent object }
	}
	until := func(is func(message) bool) message {
		t.Helper()
		for {
			line, err := answers.ReadBytes('\n')
			require.NoError(t, err)
			var m message
			require.NoError(t, json.Unmarshal(line, &m))
			if is(m) {
				return m
			}
		}
	}
	answer := func(id int) object {
		t.Helper()
		return until(func(m message) bool { return m.ID == id }).Result.StructuredContent
	}
	ask(1, "initialize", object{"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": object{"name": "test", "version": "1"}})
	answer(1)
	_, err = fmt.Fprintln(toServer, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	require.NoError(t, err)
	ask(2, "tools/call", object{"name": "terminal_create", "arguments": object{"session": "s", "command": "echo shown; exec sleep 1000", "settle_seconds": 60}})
	created := answer(2)
	s, err := sessions.Get("s")
	require.NoError(t, err)
	s.Notify("news")
	ask(3, "tools/call", object{
		"name": "terminal_wait", "arguments": object{"terminal": of(created)["terminal"], "text": "never"}, "_meta": object{"progressToken": "waits"},
	})
	until(func(m message) bool { return m.Method == "notifications/progress" })
	_, err = fmt.Fprintln(toServer, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	require.NoError(t, err)
	out := answer(3)
	assert.Equal(t, "cancelled", out["reason"])
	assert.Equal(t, "shown", shown(out))
	assert.NotContains(t, out, "notices")
	assert.Equal(t, []string{"news"}, s.Notices())
	require.NoError(t, toServer.Close())
	require.NoError(t, <-served)
	require.NoError(t, server.Close())
	require.NoError(t, sessions.Close())
}

func TestAWaitTellsTheLastLineWhileItTakes(t *testing.T) {
	testenv.Slow(t)
	messages := make(chan string, 1000)
	d := newDesk(t, setup{
		server: mcpserver.Options{Structured: true, Progress: 10 * time.Millisecond},
		client: mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			messages <- req.Params.Message
		}},
	})
	id, _ := d.create(object{"command": `echo first; printf '10%%\r\e[1m20%%\e[0m'; read; exit 6`})
	params := &mcp.CallToolParams{Name: "terminal_wait", Arguments: object{"terminal": id, "timeout_seconds": testenv.Patience.Seconds()}}
	params.SetProgressToken("token")
	done := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := d.CallTool(testenv.Context(t), params)
		assert.NoError(t, err)
		done <- res
	}()
	for message := range messages {
		if strings.HasSuffix(message, " s: 20%") {
			break
		}
	}
	d.keys(id, "Enter")
	out := structured(t, <-done)
	assert.Equal(t, "exited", out["reason"])
	assert.EqualValues(t, 6, of(out)["exit_code"])
}
