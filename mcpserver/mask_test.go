package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"testing"

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

func TestAnAnswerWithoutASecretIsAsItIs(t *testing.T) {
	h := connect(t, setup{plain: true, server: mcpserver.Options{Mask: leavesOut}})
	res, err := h.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_command", Arguments: object{"command": "echo hello"}})
	require.NoError(t, err)
	assert.NotContains(t, res.Content[0].(*mcp.TextContent).Text, "left out")
}
