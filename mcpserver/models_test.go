package mcpserver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// asHostsDo is what a model gets of a result in Claude Code and in Codex: the structured
// content if there is some, and then nothing else.
func asHostsDo(t *testing.T, res *mcp.CallToolResult) (text string, pictures [][]byte) {
	t.Helper()
	if res.StructuredContent != nil {
		b, err := json.Marshal(res.StructuredContent)
		require.NoError(t, err)
		return string(b), nil
	}
	for _, content := range res.Content {
		switch content := content.(type) {
		case *mcp.TextContent:
			text += content.Text
		case *mcp.ImageContent:
			pictures = append(pictures, content.Data)
		}
	}
	return text, pictures
}

// What a model needs for its next call, or to know how the last one went, is in the text of
// each tool: ids, offsets, exit codes, and what is left out.
func TestAModelSeesWhatItNeedsThoughHostsDropTheTextBesideData(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{plain: true})
	tools, err := h.ListTools(testenv.Context(t), nil)
	require.NoError(t, err)
	untried := make(map[string]bool)
	for _, tool := range tools.Tools {
		assert.Nil(t, tool.OutputSchema, tool.Name)
		untried[tool.Name] = true
	}
	ids := make(map[string]string)
	fill := func(text string) string {
		for name, id := range ids {
			text = strings.ReplaceAll(text, "{"+name+"}", id)
		}
		return text
	}
	for _, row := range []struct{ tool, arguments, want string }{
		{"run_command", `{"command": "true"}`, `^\[exit 0, new session default, in /.*\]$`},
		{"run_command", `{"command": "echo out; echo err >&2; echo out; (exit 3)"}`, `^out\nerr\nout\n\[exit 3\]$`},
		{"run_command", `{"command": "echo out; echo err >&2", "merge_stderr": false}`, `^out\n\[stderr\]\nerr\n\[exit 0\]$`},
		{"run_command", `{"command": "cat; echo err >&2; echo out", "stdin": "in\n"}`, `^in\nerr\nout\n\[exit 0\]$`},
		{"run_command", `{"command": "mkdir sub; cd sub"}`, `^\[exit 0, now in /.*/sub\]$`},
		{"run_command", `{"command": "cd .; pwd"}`, `^/.*/sub\n\[exit 0\]$`},
		{"run_command", `{"command": "bash -c 'kill -TERM $$'"}`, `^\[exit 143, signal 15 \(terminated\)\]$`},
		{"run_command", `{"command": "sleep 1000", "timeout_seconds": 0.1}`, `^\[stopped: timeout, exit 124, after \S+ s\]\n`},
		{"run_command", `{"command": "seq 1 1000", "max_output_bytes": 256}`, `(?s)^1\n.*\[\d+ bytes are left out here: read_output with result_id "(?P<result>\S+)", stream "stdout" and offset \d+\].*1000\n\[exit 0, \d+ bytes are left out: read_output has them, result \S+\]$`},
		{"read_output", `{"result_id": "{result}", "bytes": 4}`, `^1\n2\n\[bytes 0 to 4 of 3893 of stdout; the rest: offset 4\]$`},
		{"read_output", `{"result_id": "{result}", "pattern": "^99", "max_matches": 1}`, `^offset 285: 99\n\[1 lines found in stdout; more: from_offset 3848\]$`},
		{"interrupt", `{}`, `^no command runs in session "default"$`},
		{"session_checkpoint", `{"checkpoint": "one"}`, `^session "default" is remembered as "one", in /.*/sub$`},
		{"session_checkpoint", `{"checkpoint": "two"}`, `; it has the checkpoints one, two$`},
		{"session_rollback", `{"checkpoint": "one"}`, `^session "default" is as it was at "one", in /`},
		{"session_fork", `{"new_session": "fork"}`, `^session "fork" is a fork of "default", in /.*/sub$`},
		{"session_list", `{}`, `(?s)default: idle, in /.*/sub; \d+ commands, 0 jobs, 0 terminals; checkpoints: one, two; last used \d+s ago\nfork: `},
		{"session_close", `{"session": "fork"}`, `^session "fork" is closed$`},
		{"run_command", `{"command": "echo ready; cat; exit 5", "background": true, "keep_stdin_open": true}`, `^\[runs in the background as job (?P<job>\S+)\]$`},
		{"job_wait", `{"jobs": ["{job}"], "pattern": "ready"}`, `^ready\n\[matched after \S+ s: line 1, offset 0: ready\]\n\[{job}: running, pid \d+, `},
		{"job_list", `{}`, `^{job}: running, pid \d+, for .*: echo ready; cat; exit 5$`},
		{"job_poll", `{"job": "{job}"}`, `^ready\n\[bytes 0 to 6\]\n\[{job}: running`},
		{"job_poll", `{"job": "{job}"}`, `^\[nothing new behind byte 6\]\n`},
		{"job_write", `{"job": "{job}", "text": "a"}`, `^\[1 bytes were written\]\n`},
		{"job_submit", `{"job": "{job}", "text": "b"}`, `^\[the line was written\]\n`},
		{"job_close", `{"job": "{job}"}`, `^\[its input is at its end\]\n`},
		{"job_wait", `{"jobs": ["{job}"]}`, `^ready\nab\n\[exited after \S+ s\]\n\[{job}: exited, exit code 5, `},
		{"job_log", `{"job": "{job}", "pattern": "a"}`, `^line 1, offset 0: ready\nline 2, offset 6: ab\n\[2 lines found\]\n`},
		{"job_log", `{"job": "{job}", "bytes": 6}`, `^ready\n\[bytes 0 to 6 of 9, from line 1 on; the rest: offset 6\]\n`},
		{"job_kill", `{"job": "{job}"}`, `^\[it had ended before\]\n`},
		{"terminal_create", `{"command": "printf 'name: '; read -r x; echo hello $x; sleep 1000", "settle_seconds": 60}`,
			`^name:\n\[terminal (?P<terminal>\S+): running, pid \d+, 80x24, 6 bytes of output(, bash waits for a line of input)?, cursor in row 1, column 7\]$`},
		{"terminal_send_keys", `{"terminal": "{terminal}", "keys": ["Bob", "Enter"]}`, `^name: Bob\nhello Bob\n\[terminal {terminal}: running`},
		{"terminal_wait", `{"terminal": "{terminal}", "text": "hello"}`, `(?s)hello Bob\n.*\[waited: matched "hello", after \S+ s\]$`},
		{"terminal_screen", `{"terminal": "{terminal}", "format": "png"}`, `^name: Bob\nhello Bob\n`},
		{"terminal_capture", `{"terminal": "{terminal}", "offset": 0, "bytes": 6}`, `\[bytes 0 to 6 of \d+; the rest: offset 6\]`},
		{"terminal_resize", `{"terminal": "{terminal}", "columns": 70, "rows": 12}`, `, 70x12, `},
		{"terminal_list", `{}`, `^terminal {terminal}: running, pid \d+, 70x12, \d+ bytes of output, session default, in /.*/sub, .*; last line: hello Bob$`},
		{"terminal_kill", `{"terminal": "{terminal}"}`, `^\[terminal {terminal}: cancelled, `},
	} {
		delete(untried, row.tool)
		var arguments object
		require.NoError(t, json.Unmarshal([]byte(fill(row.arguments)), &arguments))
		res, err := h.try(row.tool, arguments)
		require.NoError(t, err)
		text, pictures := asHostsDo(t, res)
		want := regexp.MustCompile(fill(row.want))
		require.Regexp(t, want, text, "%s %s", row.tool, row.arguments)
		found := want.FindStringSubmatch(text)
		for i, name := range want.SubexpNames() {
			if name != "" {
				ids[name] = found[i]
			}
		}
		if strings.Contains(row.arguments, "png") {
			require.Len(t, pictures, 1)
			_, err := png.Decode(bytes.NewReader(pictures[0]))
			require.NoError(t, err)
		}
	}
	assert.Empty(t, slices.Sorted(maps.Keys(untried)))
}

// Structured answers have the text too, but the hosts above do not show it to a model. So
// answers are structured only on request.
func TestProgramsGetFieldsBesideTheText(t *testing.T) {
	h := connect(t, setup{})
	res, err := h.try("run_command", object{"command": "echo out; echo err >&2"})
	require.NoError(t, err)
	assert.Regexp(t, `^out\n\[stderr\]\nerr\n\[exit 0`, textOf(res))
	out := structured(t, res)
	assert.Equal(t, []any{"out\n", "err\n"}, []any{out["stdout"], out["stderr"]})
	seen, _ := asHostsDo(t, res)
	assert.NotContains(t, seen, "[exit 0")
}

func TestTheDirectoryIsToldWhenItIsAnotherThanTheLastAnswerSaid(t *testing.T) {
	h := connect(t, setup{plain: true})
	_, text := h.call("run_command", object{"command": "pwd -P"})
	start, _, _ := strings.Cut(text, "\n")
	_, text = h.call("run_command", object{"command": "cd /usr"})
	assert.Equal(t, "[exit 0, now in /usr]", text)
	_, text = h.call("run_command", object{"command": "pwd", "dir": "/etc"})
	assert.Equal(t, "/etc\n[exit 0]", text, "the session stays where it was")

	// It goes elsewhere and back while another call waits: the last answer counts.
	begun, answered := filepath.Join(t.TempDir(), "begun"), filepath.Join(t.TempDir(), "answered")
	call := func(command string) <-chan string {
		text := make(chan string, 1)
		go func() {
			res, err := h.try("run_command", object{"command": command})
			assert.NoError(t, err)
			text <- textOf(res)
		}()
		return text
	}
	first := call("cd /etc; echo >" + begun + "; sleep 0.1")
	testenv.AwaitFile(t, begun)
	second := call("cd /usr; until [[ -e " + answered + " ]]; do sleep 0.01; done")
	assert.Equal(t, "[exit 0, now in /etc]", <-first)
	require.NoError(t, os.WriteFile(answered, nil, 0o600))
	assert.Equal(t, "[exit 0, now in /usr]", <-second)

	_, text = h.call("run_command", object{"restart": true})
	assert.Contains(t, text, fmt.Sprintf("now in %s]", start))
	_, text = h.call("run_command", object{"command": "true"})
	assert.Equal(t, "[exit 0]", text)
	h.call("session_fork", object{"new_session": "fork"})
	_, text = h.call("run_command", object{"session": "fork", "command": "true"})
	assert.Equal(t, "[exit 0]", text, "session_fork has told it")
	h.call("session_close", object{"session": "fork"})
	_, text = h.call("run_command", object{"session": "fork", "command": "cd /etc"})
	assert.Equal(t, "[exit 0, new session fork, in /etc]", text)
}

func TestStderrThatIsInStdoutIsNotLookedForElsewhere(t *testing.T) {
	h := connect(t, setup{plain: true})
	_, text := h.call("run_command", object{"command": "seq 1 1000 >&2", "max_output_bytes": 256})
	id := regexp.MustCompile(`result_id "(\S+)"`).FindStringSubmatch(text)[1]
	assert.Contains(t, h.refuse("read_output", object{"result_id": id, "stream": "stderr"}), "is in its stream stdout")
	_, text = h.call("read_output", object{"result_id": id, "tail_lines": 1})
	assert.Equal(t, "1000\n[bytes 3888 to 3893 of 3893 of stdout]", text)
}
