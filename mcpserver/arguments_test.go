package mcpserver_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestNamesAndTypesThatModelsKnowFromElsewhereAreUnderstood(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	h.call("run_command", object{"command": "cd /usr"})
	for _, row := range []struct {
		arguments object
		want      string
	}{
		{object{"cmd": "pwd", "cwd": "/etc"}, "/etc\n[exit 0]"},
		{object{"script": "pwd", "workdir": "/etc"}, "/etc\n[exit 0]"},
		{object{"cmd": "pwd", "directory": "/etc"}, "/etc\n[exit 0]"},
		{object{"command": "pwd", "working_directory": "/etc"}, "/etc\n[exit 0]"},
		{object{"command": "pwd", "cmd": "pwd"}, "/usr\n[exit 0]"},
		{object{"command": "pwd", "description": "Say where it is", "tty": false, "restart": false}, "/usr\n[exit 0]"},
		{object{"command": "pwd", "run_in_background": "false"}, "/usr\n[exit 0]"},
		{object{"command": "sleep 1000", "timeout_ms": 100}, "[stopped: timeout, exit 124"},
		{object{"command": "sleep 1000", "timeout_seconds": "0.1"}, "[stopped: timeout, exit 124"},
		{object{"command": "printf '\\e[1mx'", "raw": "True"}, "\x1b[1mx\n"},
		{object{"command": "sleep 1000", "yield_time_ms": 100}, "[runs in the background as job "},
		{object{"command": "seq 1 1000", "max_output_tokens": 100}, " bytes are left out here"},
		{object{"command": "sleep 1000", "run_in_background": true, "watch": "[0-9]"}, "[runs in the background as job "},
		{object{"command": "sleep 1000", "background": "true", "watch": `["a", "b"]`}, "[runs in the background as job "},
		{object{"cmd": "pwd", "session_name": "other", "dir": "/etc"}, "/etc\n[exit 0, new session other, in "},
	} {
		_, text := h.call("run_command", row.arguments)
		assert.Contains(t, text, row.want, "%v", row.arguments)
	}

	id := h.background("default", "cat", object{"keep_stdin_open": true})
	for _, name := range []string{"id", "job_id", "task_id", "bash_id", "shell_id", "process_id", "session_id"} {
		h.call("job_submit", object{name: id, "chars": name})
		_, text := h.call("job_wait", object{name: id, "pattern": "^" + name + "$", "timeout": 60000})
		assert.Contains(t, text, "[matched after", name)
		_, text = h.call("job_log", object{name: id, "filter": name})
		assert.Contains(t, text, "[1 lines found]", name)
	}
	h.call("job_write", object{"session_id": id, "chars": "written\n", "yield_time_ms": 1000, "max_output_tokens": 6000})
	_, text := h.call("job_wait", object{"job": id, "pattern": "^written$"})
	assert.Contains(t, text, "[matched after")
	h.call("job_submit", object{"session_id": id, "chars": "x", "yield_time_ms": "1000"})
	assert.Contains(t, h.bad("job_wait", object{"job": id, "jobs": []string{"other"}}), `"jobs" and "job" mean the same`)
	h.call("job_kill", object{"shell_id": id})
	_, text = h.call("terminal_create", object{"cmd": "cat", "cols": "70", "height": 20, "tty": true})
	assert.Contains(t, text, ", 70x20, ")
	terminal := strings.TrimSuffix(strings.Fields(text)[1], ":")
	_, text = h.call("terminal_send_keys", object{"session_id": terminal, "chars": "typed\n", "yield_time_ms": 500, "max_output_tokens": 6000})
	assert.Contains(t, text, "typed\ntyped\n")
	_, text = h.call("terminal_send_keys", object{"terminal_id": terminal, "keys": "once"})
	assert.Contains(t, text, "once")
	_, text = h.call("session_checkpoint", object{"session_name": "other", "name": "before"})
	assert.Contains(t, text, `session "other" is remembered as "before"`)
	_, text = h.call("session_rollback", object{"session": "other", "name": "before"})
	assert.Contains(t, text, `session "other" is as it was at "before"`)
	assert.Contains(t, h.bad("session_rollback", object{"name": "other", "checkpoint": "before"}), `"checkpoint" and "name" mean the same`)
	h.call("session_close", object{"session_id": "other"})
}

func TestTheExampleOfEachToolIsARightCall(t *testing.T) {
	h := connect(t, setup{plain: true})
	tools, err := h.ListTools(testenv.Context(t), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		_, example, found := strings.Cut(h.bad(tool.Name, object{"no_such_argument": 1}), "\nA right call of "+tool.Name+": ")
		require.True(t, found, tool.Name)
		var arguments object
		require.NoError(t, json.Unmarshal([]byte(example), &arguments), "%s: %s", tool.Name, example)
		for name := range arguments {
			assert.Contains(t, tool.InputSchema.(object)["properties"], name, "%s: what is hidden is no example", tool.Name)
		}
		arguments["no_such_argument"] = 1
		assert.Contains(t, h.bad(tool.Name, arguments), `nothing was done: there is no argument "no_such_argument"`, "nothing else is wrong with it")
	}
}

// All that is wrong is told at once, in the same order each time.
func TestAllThatIsWrongWithArgumentsIsToldAtOnce(t *testing.T) {
	h := connect(t, setup{plain: true})
	arguments := object{
		"cmd": "pwd", "command": "ls", "timeout_seconds": "soon", "max_output_bytes": "5", "raw": "yes", "on_timeout": "explode",
		"watch": []any{1}, "zebra": 1, "timout": 2, "keep_stdin_open": true, "idle_timeout": -1,
	}
	want := `nothing was done, as 10 things are wrong with the arguments:
- "command" and "cmd" mean the same, and are given as "ls" and "pwd": give one of them
- "timeout_seconds" must be a number, and is a string ("soon")
- "idle_timeout" is -1, and must be 0.001 or more
- "max_output_bytes" is 5, and must be 256 or more
- "raw" must be a boolean, and is a string ("yes")
- "on_timeout" is "explode", and must be one of "stop", "background"
- "watch" must be an array of which each is a string, and has a number
- there is no argument "timout"; did you mean "timeout_seconds"?
- there is no argument "zebra"; there are: command, session, timeout_seconds, idle_timeout_seconds, stdin, dir, merge_stderr, max_output_bytes, raw, background, on_timeout, watch, keep_stdin_open
- "keep_stdin_open" goes with background: true
A right call of run_command: {"command": "make -j4", "timeout_seconds": 600}`
	for range 5 {
		require.Equal(t, want, h.bad("run_command", arguments))
	}
	assert.Equal(t, "nothing was done, as 2 things are wrong with the arguments:\n"+
		"- only one of \"offset\" with \"bytes\", \"tail_lines\" and \"pattern\" can be used; with \"pattern\", \"from_offset\" is where to begin\n"+
		"- \"pattern\": error parsing regexp: missing closing ): `(`; it wants RE2, which has no lookaround and no backreferences\n"+
		"A right call of read_output: {\"result_id\": \"r7-x3kq\", \"offset\": 8192}",
		h.bad("read_output", object{"result_id": "r1", "pattern": "(", "tail_lines": 1}))
	assert.Equal(t, "nothing was done: there is no argument \"x\": this tool has none\nA right call of session_list: {}", h.bad("session_list", object{"x": 1}))
	assert.Contains(t, h.bad("run_command", object{"command": "ls", "session_id": "7"}), `"session" is the name of a shell`)
	assert.Contains(t, h.bad("run_command", object{"command": "vim", "tty": true}), "terminal_create")
	assert.Contains(t, h.bad("run_command", object{"command": "vim", "timeout_ms": -1}), `"timeout_ms", that is "timeout_seconds", is -0.001, and must be 0.001 or more`)
	assert.Contains(t, h.bad("run_command", object{"command": "vim", "max_output_tokens": -1}), `"max_output_tokens" is -1, and must be 256 or more`)
	assert.Contains(t, h.bad("job_wait", object{"jobs": []string{"a"}, "task_id": "b"}), `"jobs" and "task_id" mean the same`)
	assert.Contains(t, h.bad("job_log", object{"job": "a", "offset": "0x10"}), `"offset" must be an integer, and is a string ("0x10")`)
}

func TestArgumentsThatAreNoObjectAreToldAsWell(t *testing.T) {
	h := connect(t, setup{plain: true})
	call := func(arguments string) *mcp.CallToolResult {
		res, err := h.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_command", Arguments: json.RawMessage(arguments)})
		require.NoError(t, err)
		return res
	}
	assert.Regexp(t, `^a\n\[exit 0`, textOf(call(`"{\"command\": \"echo a\"}"`)), "some clients send them as a string")
	assert.Contains(t, textOf(call(`["echo a"]`)), "no JSON object")
	for _, none := range []string{`[]`, `5`, `true`} {
		assert.Contains(t, textOf(call(none)), "nothing was done: the arguments are no JSON object: ", "what is missing follows from that")
	}
	assert.Contains(t, textOf(call(`"echo a"`)), `no JSON object: "echo a"`)
	assert.Contains(t, textOf(call(`null`)), `"command" is missing`)
}

func TestASessionIsRestarted(t *testing.T) {
	h := connect(t, setup{plain: true})
	h.call("run_command", object{"command": "x=1; cd /etc; sleep 1000 &"})
	_, text := h.call("run_command", object{"restart": "true", "command": "echo ${x-none}; jobs -p"})
	assert.Equal(t, "none\n[exit 0]", text)
	_, text = h.call("run_command", object{"restart": true})
	assert.Contains(t, text, "[the session's bash was restarted: ")
}
