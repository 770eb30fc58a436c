package mcpserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
)

// begin calls run_command and returns when the command runs. The channel has what came of it.
func (h *host) begin(command string) <-chan *mcp.CallToolResult {
	h.t.Helper()
	answers := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := h.try("run_command", object{"command": command})
		if err != nil {
			res = nil
		}
		answers <- res
	}()
	testenv.Await(h.t, "the command runs", func() bool {
		_, text := h.call("session_list", object{})
		return strings.Contains(text, "runs: "+command)
	})
	return answers
}

// A client that has given a call up without a word calls again, and is not made to wait.
func TestACallIsToldOfASessionThatIsBusy(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{plain: true, server: mcpserver.Options{TurnTimeout: 100 * time.Millisecond}})
	answer := h.begin("echo printed; sleep 1000")
	calls := []mcp.CallToolParams{
		{Name: "run_command", Arguments: object{"command": "touch no"}},
		{Name: "run_command", Arguments: object{"command": "cat", "stdin": "no"}},
		{Name: "run_command", Arguments: object{"command": "touch no", "background": true}},
		{Name: "session_checkpoint", Arguments: object{"checkpoint": "c"}},
		{Name: "session_fork", Arguments: object{"new_session": "f"}},
		{Name: "terminal_create", Arguments: object{}},
	}
	for _, call := range calls {
		why := h.refuse(call.Name, call.Arguments.(object))
		assert.Regexp(t, `^session default is busy for \d+ s with: echo printed; sleep 1000 \(result r\d+-\w+\)\. Nothing was run\. `, why, call.Name)
		for _, remedy := range []string{"interrupt", "another session"} {
			assert.Contains(t, why, remedy, call.Name)
		}
	}
	_, text := h.call("run_command", object{"command": "echo beside", "session": "other"})
	assert.Contains(t, text, "beside")
	h.call("interrupt", object{})
	require.NotNil(t, <-answer)
	result := ""
	for i := range 2 {
		_, text = h.call("run_command", object{"command": "ls"})
		told := regexp.MustCompile(`the command of an earlier call \(echo printed; sleep 1000\) stopped: result (r\d+-\w+)`).FindStringSubmatch(text)
		assert.Equal(t, i == 0, told != nil, "it is told once: %s", text)
		if told != nil {
			result = told[1]
		}
		assert.NotContains(t, text, "no\n")
	}
	_, text = h.call("read_output", object{"result_id": result})
	assert.Contains(t, text, "printed\n")
}

// A session by name has callers that are no clients: a person's repl, say.
func TestACallIsToldForWhomASessionIsInUse(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{plain: true, server: mcpserver.Options{TurnTimeout: 100 * time.Millisecond}})
	h.call("run_command", object{"command": "true"})
	sess, err := h.sessions.Get("default")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	done := make(chan error, 1)
	go func() {
		_, err := sess.Do(ctx, command.Request{Script: "sleep 1000", Caller: "limpet repl, process 4711 on pts/3"})
		done <- err
	}()
	testenv.Await(t, "the command runs", func() bool {
		info, err := sess.Info(ctx)
		return err == nil && info.Running != ""
	})
	for _, call := range []mcp.CallToolParams{
		{Name: "run_command", Arguments: object{"command": "sleep 1000"}},
		{Name: "run_command", Arguments: object{"command": "touch no", "background": true}},
		{Name: "session_checkpoint", Arguments: object{"checkpoint": "c"}},
		{Name: "session_fork", Arguments: object{"new_session": "f"}},
		{Name: "terminal_create", Arguments: object{}},
	} {
		why := h.refuse(call.Name, call.Arguments.(object))
		assert.Equal(t, "session default is in use: sleep 1000 (for limpet repl, process 4711 on pts/3). Nothing was run. Call again later, or use another session name, which runs beside it", why, call.Name)
	}
	cancel()
	require.Error(t, <-done)
	_, text := h.call("run_command", object{"command": "echo free"})
	assert.Contains(t, text, "free")
}

func TestACallSaysForWhatItHasWaited(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{plain: true})
	answer := h.begin("sleep 1.5; echo first")
	_, text := h.call("run_command", object{"command": "echo second"})
	assert.Regexp(t, `^second\n\[exit 0\]\n\[waited \d s behind: sleep 1.5; echo first\]`, text)
	assert.Contains(t, textOf(<-answer), "first\n[exit 0")
	_, text = h.call("run_command", object{"command": "echo third"})
	assert.Equal(t, "third\n[exit 0]", text)

	sess, err := h.sessions.Get("default")
	require.NoError(t, err)
	begun := filepath.Join(testenv.TempDir(t), "begun")
	done := make(chan error, 1)
	go func() {
		_, err := sess.Do(testenv.Context(t), command.Request{Script: "echo >" + begun + "; sleep 1.5", Caller: "a person"})
		done <- err
	}()
	testenv.AwaitFile(t, begun)
	_, text = h.call("run_command", object{"command": "echo fourth"})
	assert.Regexp(t, `^fourth\n\[exit 0\]\n\[waited \d s behind: echo >.*; sleep 1.5 \(for a person\)\]`, text)
	require.NoError(t, <-done)
}

// A client that asks for no progress gives up after a minute.
func TestAClientWithoutProgressIsAnsweredSoon(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{server: mcpserver.Options{Answer: 600 * time.Millisecond, TurnTimeout: 100 * time.Millisecond, Progress: time.Hour}})
	began := time.Now()
	out, text := h.call("run_command", object{"command": "x=1; echo begun; until [[ -e go ]]; do sleep 0.01; done; echo end"})
	assert.Less(t, time.Since(began), 10*time.Second)
	assert.Equal(t, "background", out["status"])
	job := out["job"].(object)["job"].(string)
	assert.Contains(t, text, "runs in the background as job "+job)
	waited, _ := h.call("job_wait", object{"jobs": []string{job}, "timeout_seconds": 1000})
	assert.Equal(t, "timeout", waited["reason"])
	h.run("default", "touch go")
	testenv.Await(t, "the job ends", func() bool {
		waited, _ = h.call("job_wait", object{"jobs": []string{job}})
		return waited["reason"] == "exited"
	})
	assert.Contains(t, waited["output"], "end")

	// A limit of the call's own is that of the job.
	out, _ = h.call("run_command", object{"command": "sleep 1000", "timeout_seconds": 1.5})
	require.Equal(t, "background", out["status"])
	job = out["job"].(object)["job"].(string)
	testenv.Await(t, "the job ends", func() bool {
		waited, _ = h.call("job_wait", object{"jobs": []string{job}})
		return waited["reason"] == "exited"
	})
	assert.Equal(t, "timeout", waited["job"].(object)["stopped_by"])
	out, _ = h.call("run_command", object{"command": "sleep 1000", "timeout_seconds": 0.1})
	assert.Equal(t, "timeout", out["stopped_by"])
	out, _ = h.call("run_command", object{"command": "cat; sleep 1000", "stdin": "in"})
	assert.Equal(t, "timeout", out["stopped_by"], "a job cannot have its stdin")

	params := &mcp.CallToolParams{Name: "run_command", Arguments: object{"command": "sleep 1.2; echo end"}}
	params.SetProgressToken("token")
	res, err := h.CallTool(context.Background(), params)
	require.NoError(t, err)
	assert.Equal(t, "exited", structured(t, res)["status"], "this one waits")
}

func TestAWaitThatIsTooLongIsTakenForTheLongest(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{server: mcpserver.Options{MaxTimeout: 200 * time.Millisecond, Timeout: 100 * time.Millisecond}})
	out, _ := h.call("run_command", object{"command": "sleep 1000", "timeout_seconds": 300, "on_timeout": "background"})
	require.Equal(t, "background", out["status"])
	waited, _ := h.call("job_wait", object{"jobs": []string{out["job"].(object)["job"].(string)}, "timeout_seconds": 300})
	assert.Equal(t, "timeout", waited["reason"])
	created, _ := h.call("terminal_create", object{"command": "cat", "settle_seconds": 0})
	waited, _ = h.call("terminal_wait", object{"terminal": created["terminal"].(object)["terminal"], "text": "never", "timeout_seconds": 300})
	assert.Equal(t, "timeout", waited["reason"])
	why := h.bad("run_command", object{"command": "sleep 1000", "timeout_seconds": 300})
	assert.Contains(t, why, `A right call of run_command: {"command": "make -j4", "timeout_seconds": 0.2}`)
}

// Hosts add arguments of their own, and check those of a model by the schema.
func TestNoCallIsRefusedForWhatAHostAdds(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	tools, err := h.ListTools(testenv.Context(t), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		assert.NotContains(t, fmt.Sprint(tool.InputSchema), "additionalProperties", tool.Name)
		res, err := h.try(tool.Name, object{"wait_for_previous": true})
		require.NoError(t, err)
		assert.NotContains(t, textOf(res), "wait_for_previous", tool.Name)
		res, err = h.try(tool.Name, object{"no_such_argument": true})
		require.NoError(t, err)
		assert.True(t, res.IsError, tool.Name)
		assert.Contains(t, textOf(res), `"no_such_argument"`, tool.Name)
	}
	_, text := h.call("run_command", object{"command": "echo one", "wait_for_previous": true})
	assert.Contains(t, text, "one")
}

// What a refusal shows as a right call is right under the flags of the server.
func TestWhatIsShownAsARightCallIsRight(t *testing.T) {
	testenv.Slow(t)
	for _, opts := range []mcpserver.Options{
		{}, {MaxTimeout: time.Second, Timeout: time.Second}, {OnTimeout: "background"}, {MaxTimeout: 50 * time.Second}, {AnswerLimit: 300},
	} {
		h := connect(t, setup{server: opts})
		tools, err := h.ListTools(testenv.Context(t), nil)
		require.NoError(t, err)
		for _, tool := range tools.Tools {
			res, err := h.try(tool.Name, object{"no_such_argument": true})
			require.NoError(t, err)
			_, example, found := strings.Cut(textOf(res), "A right call of "+tool.Name+": ")
			require.True(t, found, textOf(res))
			arguments := parsed(t, example)
			if tool.Name == "run_command" {
				arguments["command"] = "true"
			}
			res, err = h.try(tool.Name, arguments)
			require.NoError(t, err)
			assert.NotContains(t, textOf(res), "nothing was done", "%s %s", tool.Name, example)
		}
	}
}

// parsed decodes an object.
func parsed(t *testing.T, text string) object {
	t.Helper()
	var out object
	require.NoError(t, json.Unmarshal([]byte(text), &out), text)
	return out
}
