package mcpserver_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

func TestJobWaitFindsALineThatIsThereAlready(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "echo a; printf '\\033[1mlistening on 8080\\033[0m\\n'; sleep 1000", nil)
	out, text := h.call("job_wait", object{"jobs": []string{id}, "pattern": "listening on ([0-9]+)$"})
	assert.Equal(t, "matched", out["reason"])
	assert.Equal(t, object{"line": 2.0, "offset": 2.0, "text": "listening on 8080"}, out["match"])
	assert.Equal(t, "a\nlistening on 8080\n", out["output"])
	assert.Equal(t, "running", out["job"].(object)["state"])
	assert.Contains(t, text, ": line 2, offset 2: listening on 8080]")
}

func TestJobWaitFromAnOffsetWaitsForWhatComes(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "while read -r line; do echo ready $line; done", object{"keep_stdin_open": true})
	h.call("job_submit", object{"job": id, "text": "one"})
	h.printed(id, "ready one")
	polled, _ := h.call("job_poll", object{"job": id})
	arguments := object{"jobs": []string{id}, "pattern": "ready", "from_offset": polled["next_offset"], "timeout_seconds": 0.05}
	out, _ := h.call("job_wait", arguments)
	assert.Equal(t, "timeout", out["reason"], "the first line is not looked at")
	h.call("job_submit", object{"job": id, "text": "two"})
	arguments["timeout_seconds"] = testenv.Patience.Seconds()
	out, _ = h.call("job_wait", arguments)
	assert.Equal(t, object{"line": 2.0, "offset": 10.0, "text": "ready two"}, out["match"])
}

func TestJobWaitFindsAPromptWithoutNewline(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	id := h.background("default", "printf 'Your name? '; read -r name; echo hello $name", object{"keep_stdin_open": true})
	h.printed(id, `name\? $`)
	h.call("job_submit", object{"job": id, "text": "you"})
	out, _ := h.call("job_wait", object{"jobs": []string{id}})
	assert.Equal(t, "Your name? hello you\n", out["output"])
}

func TestThatAJobEndsWithoutTheLineIsNoTimeout(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "echo no; exit 9", nil)
	out, text := h.call("job_wait", object{"jobs": []string{id}, "pattern": "ready"})
	assert.Equal(t, "exited", out["reason"])
	assert.EqualValues(t, 9, out["job"].(object)["exit_code"])
	assert.NotContains(t, out, "match")
	assert.Contains(t, text, "exit code 9")
}

func TestJobWaitForSilence(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "echo asking; sleep 1000", nil)
	out, _ := h.call("job_wait", object{"jobs": []string{id}, "silence_seconds": 0.1})
	assert.Equal(t, "silent", out["reason"])
	assert.GreaterOrEqual(t, out["job"].(object)["quiet_seconds"], 0.1)
}

func TestJobWaitForAPort(t *testing.T) {
	h := connect(t, setup{})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := listener.Addr().(*net.TCPAddr).Port
	id := h.background("default", "sleep 1000", nil)
	out, text := h.call("job_wait", object{"jobs": []string{id}, "port": port})
	assert.Equal(t, "port open", out["reason"])
	assert.Contains(t, text, "[port open after")
	require.NoError(t, listener.Close())
	out, _ = h.call("job_wait", object{"jobs": []string{id}, "port": port, "timeout_seconds": 0.1})
	assert.Equal(t, "timeout", out["reason"])
}

func TestATimeoutOfJobWaitLetsTheJobRunOn(t *testing.T) {
	h := connect(t, setup{})
	id := h.background("default", "echo so far; sleep 1000", nil)
	h.printed(id, "so far")
	out, text := h.call("job_wait", object{"jobs": []string{id}, "timeout_seconds": 0.05})
	assert.Equal(t, "timeout", out["reason"])
	assert.Equal(t, "so far\n", out["output"])
	assert.GreaterOrEqual(t, out["elapsed_seconds"], 0.05)
	assert.Equal(t, "running", out["job"].(object)["state"])
	assert.Contains(t, text, "it can be waited for again")
	h.call("job_kill", object{"job": id})
}

// TestJobWaitMayBeLongerThanTheRegistryWaits has a registry that waits for a moment.
func TestJobWaitMayBeLongerThanTheRegistryWaits(t *testing.T) {
	testenv.Slow(t)
	with := setup{}
	with.sessions.Jobs = &jobs.Options{MaxWait: 5 * time.Millisecond}
	h := connect(t, with)
	script, open := gated(t, "echo found")
	id := h.background("default", "echo up; "+script, nil)
	out, _ := h.call("job_wait", object{"jobs": []string{id}, "pattern": "found", "timeout_seconds": 0.2})
	assert.Equal(t, "timeout", out["reason"])
	assert.GreaterOrEqual(t, out["elapsed_seconds"], 0.2)
	open()
	out = h.printed(id, "found")
	assert.EqualValues(t, 2, out["match"].(object)["line"])
}

func TestJobWaitIsBoundedByTheServersLongest(t *testing.T) {
	testenv.Slow(t)
	with := setup{}
	with.server.Timeout, with.server.MaxTimeout = 50*time.Millisecond, 100*time.Millisecond
	h := connect(t, with)
	id := h.background("default", "sleep 1000", nil)
	for _, seconds := range []any{nil, 1, 1e6} {
		out, _ := h.call("job_wait", object{"jobs": []string{id}, "timeout_seconds": seconds})
		assert.Equal(t, "timeout", out["reason"])
		assert.Less(t, out["elapsed_seconds"], 1.0, "%v", seconds)
	}
}

// talkative is a setup whose clients are told often how far calls are, and what they are
// told.
func talkative() (setup, <-chan string) {
	messages := make(chan string, 100)
	with := setup{}
	with.server.Progress = 5 * time.Millisecond
	with.client.ProgressNotificationHandler = func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
		select {
		case messages <- req.Params.Message:
		default: // More than are looked at.
		}
	}
	return with, messages
}

// whileWaiting calls job_wait, and do when progress comes that ends so.
func (h *host) whileWaiting(messages <-chan string, arguments object, end string, do func()) object {
	h.t.Helper()
	params := &mcp.CallToolParams{Name: "job_wait", Arguments: arguments}
	params.SetProgressToken("token")
	done := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := h.CallTool(testenv.Context(h.t), params)
		assert.NoError(h.t, err)
		done <- res
	}()
	for ctx := testenv.Context(h.t); ; {
		select {
		case message := <-messages:
			if strings.HasSuffix(message, end) {
				do()
				return structured(h.t, <-done)
			}
		case <-ctx.Done():
			require.Fail(h.t, "no such progress came")
		}
	}
}

// gated is a script that ends when the file is there that open makes.
func gated(t *testing.T, end string) (script string, open func()) {
	file := filepath.Join(t.TempDir(), "gate")
	return "until [ -e " + file + " ]; do sleep 0.01; done; " + end, func() { require.NoError(t, os.WriteFile(file, nil, 0o600)) }
}

func TestJobWaitWithoutNamesMeansAnyThatRuns(t *testing.T) {
	with, messages := talkative()
	h := connect(t, with)
	assert.Contains(t, h.refuse("job_wait", nil), "no job runs: name one that has ended")
	before := h.background("one", "true", nil)
	h.unseen(before)
	assert.Contains(t, h.refuse("job_wait", nil), "no job runs: name one that has ended")
	h.background("one", "sleep 1000", nil)
	script, open := gated(t, "exit 2")
	second := h.background("two", script, nil)
	out := h.whileWaiting(messages, nil, " s", open)
	assert.Equal(t, "exited", out["reason"])
	assert.Equal(t, second, out["job"].(object)["job"], "the one that ends, and not the one that had ended before")
	assert.Contains(t, h.refuse("job_wait", object{"session": "two"}), `no job runs in session "two"`)
	out, _ = h.call("job_wait", object{"session": "one", "timeout_seconds": 0.01})
	assert.Equal(t, "timeout", out["reason"])
	out, _ = h.call("job_wait", object{"jobs": []string{before, before}})
	assert.Equal(t, before, out["job"].(object)["job"], "one that has ended can be named, also twice")
}

func TestJobWaitSendsTheLastLineAsProgress(t *testing.T) {
	with, messages := talkative()
	h := connect(t, with)
	quiet := h.background("default", "sleep 1000", nil)
	script, open := gated(t, "true")
	id := h.background("default", "printf 'step 1\\n10%%\\r\\033[K20%%'; "+script, nil)
	out := h.whileWaiting(messages, object{"jobs": []string{quiet, id}}, " s: 20%", open)
	assert.Equal(t, "exited", out["reason"])
}

func TestACancelledJobWaitTakesNothingAway(t *testing.T) {
	h := connect(t, setup{})
	script, open := gated(t, "exit 3")
	id := h.background("default", script, nil)
	ctx, cancel := context.WithTimeout(testenv.Context(t), 50*time.Millisecond)
	defer cancel()
	_, err := h.CallTool(ctx, &mcp.CallToolParams{Name: "job_wait", Arguments: object{"jobs": []string{id}}})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	polled, _ := h.call("job_poll", object{"job": id})
	assert.Equal(t, "running", polled["job"].(object)["state"])
	open()
	h.unseen(id)
	assert.Contains(t, h.later("default"), id)
}
