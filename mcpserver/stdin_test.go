package mcpserver_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// A model knows of functions and variables from the description alone whether a command with stdin has them.
func TestTheDescriptionOfStdinIsTrue(t *testing.T) {
	const script = "f; read -r line; echo $line $kept $exported; cd /usr; kept=changed"
	for _, row := range []struct {
		inShell           bool
		stdout, then      string
		says, saysNothing string
	}{
		{false, "in yes\n", "/ 1\n", "with the session's directory and exported variables and none of its functions", ""},
		{true, "F\nin 1 yes\n", "/usr changed\n", "Text that it reads", "of its own"},
	} {
		h := connect(t, setup{sessions: session.Options{Shell: &shell.Options{StdinInShell: row.inShell}}})
		tools, err := h.ListTools(testenv.Context(t), nil)
		require.NoError(t, err)
		var description string
		for _, tool := range tools.Tools {
			if tool.Name == "run_command" {
				schema, err := json.Marshal(tool.InputSchema)
				require.NoError(t, err)
				var in struct {
					Properties map[string]struct{ Description string }
				}
				require.NoError(t, json.Unmarshal(schema, &in))
				description = in.Properties["stdin"].Description
			}
		}
		assert.Contains(t, description, row.says)
		if row.saysNothing != "" {
			assert.NotContains(t, description, row.saysNothing)
		}

		h.call("run_command", object{"command": "f() { echo F; }; kept=1; export exported=yes; cd /"})
		out, _ := h.call("run_command", object{"command": script, "stdin": "in\n"})
		assert.Equal(t, row.stdout, out["stdout"])
		out, _ = h.call("run_command", object{"command": "echo $PWD $kept"})
		assert.Equal(t, row.then, out["stdout"])
	}
}
