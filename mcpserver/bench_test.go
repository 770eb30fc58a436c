package mcpserver_test

import (
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// What a call costs beside the command: the client of the SDK, in this process, has its
// part in it.
func BenchmarkRunCommand(b *testing.B) {
	h := connect(b, setup{})
	params := &mcp.CallToolParams{Name: "run_command", Arguments: object{"command": "true"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.CallTool(b.Context(), params); err != nil {
			b.Fatal(err)
		}
	}
}
