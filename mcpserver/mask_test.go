package mcpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
)

// leavesOut leaves the word out that these tests take for a secret.
func leavesOut(text []byte) ([]byte, []string) {
	if !bytes.Contains(text, []byte("hunter2")) {
		return text, nil
	}
	return bytes.ReplaceAll(text, []byte("hunter2"), []byte("[masked: word]")), []string{"word"}
}

// Whatever an agent reads, by whichever tool, has no secret in it, and says that something was left out.
func TestWhatLooksLikeASecretIsLeftOutOfEachAnswer(t *testing.T) {
	for _, plain := range []bool{true, false} {
		h := connect(t, setup{plain: plain, server: mcpserver.Options{Mask: leavesOut}})
		calls := func(name string, arguments object) string {
			t.Helper()
			res, err := h.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: name, Arguments: arguments})
			require.NoError(t, err)
			b, err := json.Marshal(res)
			require.NoError(t, err)
			assert.NotContains(t, string(b), "hunter2", name)
			assert.Contains(t, string(b), "[masked: word]", name)
			assert.Contains(t, res.Content[0].(*mcp.TextContent).Text, "[limpet left out of this answer what looks like a secret: word]", name)
			return string(b)
		}
		calls("run_command", object{"command": "x=hunter; echo ${x}2 12345678901234567"})
		calls("run_command", object{"command": "echo hunter2 >&2; exit 3"})
		_, err := h.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_command", Arguments: object{"command": "echo hunter2", "background": true}})
		require.NoError(t, err)
		calls("job_list", nil)
		calls("run_command", object{"command": "pwd", "session": "hunter2 is no name"})
		got := calls("run_command", object{"command": "echo hunter2 9007199254740993"})
		assert.Contains(t, got, "9007199254740993")
		list, err := h.ListResources(testenv.Context(t), nil)
		require.NoError(t, err)
		require.NotEmpty(t, list.Resources)
		b, err := json.Marshal(list)
		require.NoError(t, err)
		assert.NotContains(t, string(b), "hunter2")
		assert.Contains(t, string(b), "[masked: word]")
		testenv.Await(t, "the log of the job", func() bool {
			for _, one := range list.Resources {
				read, err := h.ReadResource(testenv.Context(t), &mcp.ReadResourceParams{URI: one.URI})
				require.NoError(t, err)
				assert.NotContains(t, read.Contents[0].Text, "hunter2")
				if bytes.Contains([]byte(read.Contents[0].Text), []byte("[masked: word]")) {
					return true
				}
			}
			return false
		})
	}
}

// What a client is told while a command runs has no secret in it either.
func TestProgressHasNoSecret(t *testing.T) {
	heard := make(chan string, 100)
	h := connect(t, setup{
		server: mcpserver.Options{Mask: leavesOut, Progress: 10 * time.Millisecond},
		client: mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			select {
			case heard <- req.Params.Message:
			default: // Enough were heard.
			}
		}},
	})
	file := filepath.Join(testenv.TempDir(t), "go")
	params := &mcp.CallToolParams{Name: "run_command", Arguments: object{"command": "echo hunter2; until [[ -e " + file + " ]]; do sleep 0.01; done"}}
	params.SetProgressToken("p")
	ended := make(chan error, 1)
	go func() {
		_, err := h.CallTool(testenv.Context(t), params)
		ended <- err
	}()
	for message := range heard {
		require.NotContains(t, message, "hunter2")
		if strings.Contains(message, "[masked: word]") {
			break
		}
	}
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, <-ended)
}

func TestAnAnswerWithoutASecretIsAsItIs(t *testing.T) {
	h := connect(t, setup{plain: true, server: mcpserver.Options{Mask: leavesOut}})
	res, err := h.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_command", Arguments: object{"command": "echo hello"}})
	require.NoError(t, err)
	assert.NotContains(t, res.Content[0].(*mcp.TextContent).Text, "left out")
}
