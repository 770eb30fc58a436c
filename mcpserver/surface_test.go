package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

var update = flag.Bool("update", false, "write testdata/surface*.json anew")

// What clients see is a promise: whoever changes it shall see the change in a diff.
//
//	go test ./mcpserver -run Surface -args -update
func TestTheSurfaceIsAsItWasWrittenDown(t *testing.T) {
	surfaceIs(t, "testdata/surface.json", setup{plain: true})
}

func TestTheSurfaceForProgramsIsAsItWasWrittenDown(t *testing.T) {
	surfaceIs(t, "testdata/surface_structured.json", setup{})
}

func surfaceIs(t *testing.T, golden string, with setup) {
	t.Helper()
	h := connect(t, with)
	tools, err := h.ListTools(testenv.Context(t), nil)
	require.NoError(t, err)
	templates, err := h.ListResourceTemplates(testenv.Context(t), nil)
	require.NoError(t, err)
	surface, err := json.Marshal(object{
		"instructions": h.InitializeResult().Instructions, "capabilities": h.InitializeResult().Capabilities,
		"tools": tools.Tools, "resourceTemplates": templates.ResourceTemplates,
	})
	require.NoError(t, err)
	var indented bytes.Buffer
	require.NoError(t, json.Indent(&indented, surface, "", "\t"))
	indented.WriteByte('\n')
	if *update {
		require.NoError(t, os.WriteFile(golden, indented.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	was, is := strings.Split(string(want), "\n"), strings.Split(indented.String(), "\n")
	for i := range min(len(was), len(is)) {
		require.Equal(t, was[i], is[i], "line %d; if it is meant: go test ./mcpserver -run Surface -args -update", i+1)
	}
	assert.Len(t, is, len(was))
}

func TestEveryToolSaysWhatAHostWantsToKnow(t *testing.T) {
	h := connect(t, setup{})
	tools, err := h.ListTools(testenv.Context(t), nil)
	require.NoError(t, err)
	require.NotEmpty(t, tools.Tools)
	for _, tool := range tools.Tools {
		assert.NotEmpty(t, tool.Title, tool.Name)
		assert.NotEmpty(t, tool.Description, tool.Name)
		require.NotNil(t, tool.Annotations, tool.Name)
		require.NotNil(t, tool.Annotations.DestructiveHint, tool.Name)
		require.NotNil(t, tool.OutputSchema, tool.Name)
		assert.Equal(t, "object", tool.OutputSchema.(object)["type"], tool.Name)
		in := tool.InputSchema.(object)
		assert.Equal(t, "object", in["type"], tool.Name)
		properties, ok := in["properties"].(object)
		assert.True(t, ok, "%s: OpenAI refuses a tool without properties, and all others with it", tool.Name)
		for name, property := range properties {
			assert.NotEmpty(t, property.(object)["description"], "%s: %s", tool.Name, name)
		}
	}
}

// What a tool returns fits its schema: the client of the SDK would not look.
func TestResultsFitTheSchemaOfTheirTool(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	validate := validator(t, h)
	ran := h.run("s", "true")
	for _, call := range []mcp.CallToolParams{
		{Name: "run_command", Arguments: object{"command": "echo a; sleep 100 & exit 3"}},
		{Name: "run_command", Arguments: object{"command": "kill -9 $$"}},
		{Name: "run_command", Arguments: object{"command": "sleep 100", "timeout_seconds": 0.1, "on_timeout": "background"}},
		{Name: "run_command", Arguments: object{"command": "sleep 100", "background": true}},
		{Name: "read_output", Arguments: object{"result_id": ran["result_id"]}},
		{Name: "read_output", Arguments: object{"result_id": ran["result_id"], "pattern": "x"}},
		{Name: "interrupt", Arguments: object{}},
		{Name: "session_list"},
		{Name: "session_checkpoint", Arguments: object{"checkpoint": "c"}},
		{Name: "session_rollback", Arguments: object{"checkpoint": "c"}},
		{Name: "session_fork", Arguments: object{"new_session": "f"}},
		{Name: "session_close", Arguments: object{"session": "f"}},
		{Name: "job_list"},
		{Name: "terminal_list"},
		{Name: "terminal_create", Arguments: object{"settle_seconds": 0}},
	} {
		res, err := h.CallTool(testenv.Context(t), &call)
		require.NoError(t, err, call.Name)
		require.False(t, res.IsError, "%s: %s", call.Name, textOf(res))
		validate(call.Name, structured(t, res))
	}
}

// validator returns what checks the result of a tool.
func validator(t *testing.T, h *host) func(tool string, out object) {
	tools, err := h.ListTools(testenv.Context(t), nil)
	require.NoError(t, err)
	return func(name string, out object) {
		t.Helper()
		i := slices.IndexFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == name })
		require.GreaterOrEqual(t, i, 0, name)
		require.NoError(t, fits(tools.Tools[i].OutputSchema, out), name)
	}
}
