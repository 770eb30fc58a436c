package mcpserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
)

func TestCommandsKeepTheStateOfTheirSession(t *testing.T) {
	h := connect(t, setup{})
	h.run("a", "cd /tmp; x=1; f() { echo f; }")
	out, text := h.call("run_command", object{"session": "a", "command": "echo $x $(f) $PWD"})
	assert.Equal(t, "1 f /tmp\n", out["stdout"])
	assert.Equal(t, "/tmp", out["dir"])
	assert.Contains(t, text, "1 f /tmp\n[exit 0]")
	assert.Equal(t, "none\n", h.run("b", "echo ${x-none}")["stdout"])
	out, _ = h.call("run_command", object{"command": "echo default"})
	assert.Equal(t, "default", out["session"])
}

func TestHowACommandEndedIsAResult(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	for _, row := range []struct {
		command string
		with    object
		want    object
	}{
		{"exit 3", nil, object{"status": "exited", "exit_code": 3.0, "restart": nil}},
		{"set -e; false; echo on", nil, object{"status": "exited", "exit_code": 1.0, "stdout": "", "restart": nil}},
		{"false", nil, object{"status": "exited", "exit_code": 1.0}},
		{"'", nil, object{"status": "exited", "exit_code": 2.0}},
		{"bash -c 'kill -TERM $$'", nil, object{"status": "exited", "exit_code": 143.0, "signal": "signal 15 (terminated)"}},
		{"echo a; sleep 1000", object{"timeout_seconds": 0.2}, object{"status": "stopped", "stopped_by": "timeout", "exit_code": 124.0, "stdout": "a\n"}},
		{"echo a; sleep 1000", object{"idle_timeout_seconds": 0.2}, object{"status": "stopped", "stopped_by": "idle_timeout", "exit_code": 124.0, "stdout": "a\n"}},
		{"kill -9 $$", nil, object{"status": "exited", "exit_code": 137.0, "signal": "signal 9 (killed)", "restart": nil}},
		{"jobs; kill -9 $$", nil, object{"status": "died", "exit_code": nil}}, // What deals with jobs runs in bash itself.
		{"cat; echo end", object{"stdin": "text\n"}, object{"stdout": "text\nend\n"}},
		{"cat; echo end", nil, object{"stdout": "end\n"}},
		{"echo out; echo err >&2", nil, object{"stdout": "out\n", "stderr": "err\n"}},
		{"echo out; echo err >&2; echo out", object{"merge_stderr": true}, object{"stdout": "out\nerr\nout\n", "stderr": ""}},
		{"pwd", object{"dir": "/tmp"}, object{"stdout": "/tmp\n"}},
	} {
		arguments := object{"command": row.command}
		for name, value := range row.with {
			arguments[name] = value
		}
		out, text := h.call("run_command", arguments)
		for name, want := range row.want {
			assert.Equal(t, want, out[name], "%s: %s", row.command, name)
		}
		assert.NotEmpty(t, text)
	}
	assert.Equal(t, "still here\n", h.run("default", "echo still here")["stdout"])
}

func TestASessionWhoseBashEndedSaysWhatWasRestored(t *testing.T) {
	h := connect(t, setup{})
	h.run("s", "x=1")
	out := h.run("s", "jobs; kill -9 $$")
	assert.NotContains(t, out, "exit_code")
	restart, ok := out["restart"].(object)
	require.True(t, ok)
	assert.Contains(t, restart["reason"], "signal 9")
	assert.Contains(t, restart["restored"], "variables")
	assert.Equal(t, "1\n", h.run("s", "echo $x")["stdout"])
}

func TestACommandThatExitsKeepsTheSessionAndItsJobs(t *testing.T) {
	h := connect(t, setup{})
	h.run("s", "x=1; sleep 1000 &")
	out := h.run("s", "y=2; exit 7")
	assert.Equal(t, 7.0, out["exit_code"])
	assert.NotContains(t, out, "restart")
	assert.NotContains(t, out, "not_kept")
	assert.Equal(t, "1 2 1\n", h.run("s", "echo $x $y $(jobs -p | wc -l); kill %1")["stdout"])
}

func TestWhatACommandChangedAndTheSessionDoesNotHaveIsSaid(t *testing.T) {
	h := connect(t, setup{})
	out, text := h.call("run_command", object{"command": "sleep 1000 & exec 5</dev/null; set -e"})
	kept, ok := out["not_kept"].([]any)
	require.True(t, ok)
	assert.Equal(t, []any{"jobs: what it left running is no job of the shell", "descriptors that it opened or closed"}, kept)
	assert.Contains(t, text, "\n[not kept: jobs: what it left running is no job of the shell; descriptors that it opened or closed]")
	assert.Equal(t, "0\n", h.run("default", "jobs -p | wc -l; true <&5 2>/dev/null && echo open")["stdout"])
}

func TestBadArgumentsAreResultsThatSayWhatIsWrong(t *testing.T) {
	h := connect(t, setup{})
	for _, row := range []struct {
		arguments object
		want      string
	}{
		{object{}, `"command" is missing: What bash runs`},
		{object{"comand": "ls"}, `there is no argument "comand"; did you mean "command"?`},
		{object{"command": "ls", "timeouts": 3}, `did you mean "timeout_seconds"?`},
		{object{"command": "ls", "workdr": "/"}, `there is no argument "workdr"; did you mean "dir"?`},
		{object{"command": "ls", "zebra": 3}, `there is no argument "zebra"; there are: command, session,`},
		{object{"command": 3}, `"command" must be a string, and is a number (3)`},
		{object{"command": "ls", "timeout_seconds": "soon"}, `"timeout_seconds" must be a number, and is a string ("soon")`},
		{object{"command": "ls", "timeout_seconds": -1}, `"timeout_seconds" is -1, and must be 0.001 or more`},
		{object{"command": "ls", "timeout_seconds": 7200}, `use background: true`},
		{object{"command": "ls", "timeout": 7200}, `is 7200, and can be 3600 at most: for longer, use background: true; timeout_ms is for milliseconds`},
		{object{"command": "ls", "timeout": 1e30}, `nothing was done: "timeout_seconds" is 1e+30, and can be 3600 at most: for longer, use background: true` + "\nA right call"},
		{object{"command": "ls", "timeout_seconds": 1e30}, `nothing was done: "timeout_seconds" is 1e+30, and can be 3600 at most: for longer, use background: true` + "\nA right call"},
		{object{"command": "ls", "timeout": 1e30, "background": true}, `is 1e+30, and can be 1000000000 at most` + "\nA right call"},
		{object{"command": "ls", "max_output_bytes": 300.5}, `"max_output_bytes" must be an integer, and is a number (300.5)`},
		{object{"command": "ls", "timeout": 7_200_000}, `nothing was done: "timeout_seconds" is 7200000, and can be 3600 at most: for longer, use background: true` + "\nA right call"},
		{object{"command": "ls", "timeout_seconds": 1e10}, `nothing was done: "timeout_seconds" is 10000000000, and can be 3600 at most: for longer, use background: true` + "\nA right call"},
		{object{"command": "ls", "on_timeout": "explode"}, `must be one of "stop", "background"`},
		{object{"command": "ls", "watch": []string{"("}, "background": true}, "missing closing )"},
		{object{"command": "ls", "watch": []any{3}, "background": true}, "watch"},
		{object{"command": "ls", "watch": []string{"x"}}, `"watch" goes with background: true`},
		{object{"command": "ls", "background": true, "merge_stderr": false}, "mean nothing with background"},
		{object{"command": "ls", "background": true, "raw": true}, "job_log have their own"},
		{object{"command": "ls", "stdin": "", "on_timeout": "background"}, "cannot be moved to the background"},
		{object{"command": "  \n"}, `nothing was done: "command" is empty`},
		{object{"command": "a\x00b"}, `nothing was done: "command" holds a NUL byte, which bash cannot carry: pass binary data by "stdin"`},
		{object{"command": "ls", "session": "../x"}, "no name"},
	} {
		assert.Contains(t, h.bad("run_command", row.arguments), row.want, "%v", row.arguments)
	}
	_, err := h.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_comand", Arguments: object{}})
	require.ErrorContains(t, err, "run_comand")
	out, _ := h.call("run_command", object{"command": "echo fine", "session": nil, "timeout_seconds": nil})
	assert.Equal(t, "fine\n", out["stdout"], "null is as if it was left out")
}

func TestWhatCannotBeDoneIsAResultWithTheRemedy(t *testing.T) {
	h := connect(t, setup{sessions: session.Options{MaxSessions: 1}})
	h.run("one", "true")
	assert.Contains(t, h.refuse("run_command", object{"command": "ls", "session": "two"}), "close one: there are one")
	assert.Contains(t, h.refuse("run_command", object{"command": "ls", "session": "one", "dir": "/no/such"}), "/no/such")
	assert.Contains(t, h.refuse("interrupt", object{"session": "two"}), "there are one")
	assert.Contains(t, h.refuse("session_close", object{"session": "two"}), "there are one")
}

func TestEscapesAndProgressAreTakenOut(t *testing.T) {
	h := connect(t, setup{})
	script := `printf '\033[31mred\033[0m\n'; for i in 1 2 3; do printf '\r%d%%' $i; done; echo; printf 'loading...\r\033[Kdone\n'; printf 'aaa\033[2K\rb\n'`
	out := h.run("s", script)
	assert.Equal(t, "red\n3%\ndone\nb\n", out["stdout"])
	out, _ = h.call("run_command", object{"command": script, "raw": true})
	assert.Contains(t, out["stdout"], "\x1b[31mred")
	assert.Contains(t, out["stdout"], "\r2%\r3%")

	out = h.run("s", `printf 'a\xff\0b'`)
	assert.Equal(t, true, out["binary"])
	out = h.run("s", "head -c 100000 /dev/zero")
	assert.Less(t, len(out["stdout"].(string)), 1000)
}

// What was taken out can be read without running the command again.
func TestTheResultOfWhatIsNotShownAsItWasPrintedIsNamed(t *testing.T) {
	h := connect(t, setup{plain: true})
	for script, raw := range map[string]string{
		`printf '\033[31mred\033[0m\n'`:           "\x1b[31mred\x1b[0m\n",
		`printf '1%%\r2%%\n'`:                     "1%\r2%\n",
		`printf 'a\0b\n'`:                         "a\x00b\n",
		`printf 'a\xffb\n'`:                       "a�b\n",
		`printf '\033[31mred\033[0m\n' >&2; cd /`: "\x1b[31mred\x1b[0m\n",
	} {
		_, text := h.call("run_command", object{"command": script})
		_, id, found := strings.Cut(text, "[exit 0, result ")
		if assert.True(t, found, "%s: %s", script, text) {
			_, text = h.call("read_output", object{"result_id": id[:strings.IndexAny(id, ",]")], "raw": true})
			assert.Contains(t, text, raw)
		}
	}
	_, text := h.call("run_command", object{"command": "echo ä"})
	assert.Equal(t, "ä\n[exit 0]", text, "there is no more to read")
	_, text = h.call("run_command", object{"command": `printf '\033[1mx\n'`, "raw": true})
	assert.Equal(t, "\x1b[1mx\n[exit 0]", text)
}

func TestProgressHasTheTimeAndTheLastLine(t *testing.T) {
	told := make(chan *mcp.ProgressNotificationParams, 1000)
	h := connect(t, setup{
		server: mcpserver.Options{Progress: 10 * time.Millisecond},
		client: mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { told <- req.Params }},
	})
	begun := filepath.Join(t.TempDir(), "begun")
	params := &mcp.CallToolParams{Name: "run_command", Arguments: object{"command": "echo first; printf '\\033[1mlast\\033[0m'; until [[ -e " + begun + " ]]; do :; done"}}
	params.SetProgressToken("token")
	done := make(chan error, 1)
	go func() {
		_, err := h.CallTool(testenv.Context(t), params)
		done <- err
	}()
	var before float64
	for range 3 {
		p := <-told
		assert.Equal(t, "token", p.ProgressToken)
		assert.Greater(t, p.Progress, before)
		before = p.Progress
	}
	for p := range told {
		if strings.HasSuffix(p.Message, " s: last") {
			break
		}
	}
	h.run("other", ": >"+begun) // Sessions do not wait for each other.
	require.NoError(t, <-done)
}

func TestCancellingACallInterruptsItsCommand(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			h := connect(t, setup{version: version})
			dir := testenv.TempDir(t)
			h.run("s", "x=1; cd "+dir)
			ctx, cancel := context.WithCancel(testenv.Context(t))
			done := make(chan error, 1)
			go func() {
				_, err := h.CallTool(ctx, &mcp.CallToolParams{Name: "run_command", Arguments: object{
					"session": "s", "command": "echo before; echo >begun; sleep 1000; touch never",
				}})
				done <- err
			}()
			testenv.AwaitFile(t, dir+"/begun")
			cancel()
			require.ErrorIs(t, <-done, context.Canceled)
			out := h.run("s", "echo $x; ls")
			assert.Equal(t, "1\nbegun\n", out["stdout"])
			require.Len(t, out["notices"], 1)
			notice := out["notices"].([]any)[0].(string)
			assert.Contains(t, notice, "was cancelled")
			id := notice[strings.Index(notice, "result ")+len("result "):]
			id, _, _ = strings.Cut(id, " ")
			page, _ := h.call("read_output", object{"result_id": id})
			assert.Equal(t, "before\n", page["text"])
		})
	}
}

func TestInterruptStopsACommandOfAnotherCall(t *testing.T) {
	h := connect(t, setup{})
	begun := filepath.Join(t.TempDir(), "begun")
	done := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := h.try("run_command", object{"session": "s", "command": "echo >" + begun + "; echo out; sleep 1000"})
		assert.NoError(t, err)
		done <- res
	}()
	testenv.AwaitFile(t, begun)
	out, text := h.call("interrupt", object{"session": "s"})
	assert.Equal(t, true, out["interrupted"])
	assert.Contains(t, text, "interrupted in session")
	stopped := structured(t, <-done)
	assert.Equal(t, "stopped", stopped["status"])
	assert.Equal(t, "interrupted", stopped["stopped_by"])
	assert.Equal(t, 130.0, stopped["exit_code"])
	out, _ = h.call("interrupt", object{"session": "s"})
	assert.Equal(t, false, out["interrupted"])
}

func TestTheEndOfTheClientEndsItsCalls(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{})
	dir := testenv.TempDir(t)
	done := make(chan error, 1)
	go func() {
		_, err := h.try("run_command", object{"session": "s", "command": "echo >" + dir + "/begun; sleep 1000; touch " + dir + "/never"})
		done <- err
	}()
	testenv.AwaitFile(t, dir+"/begun")
	require.NoError(t, h.toServer.Close())
	require.Error(t, <-done)
	s, err := h.sessions.Get("s")
	require.NoError(t, err)
	testenv.Await(t, "the command to end", func() bool {
		info, err := s.Info(testenv.Context(t))
		return err == nil && info.State == session.Idle
	})
	assert.NoFileExists(t, dir+"/never")
}

func TestWhoSendsAllItsQuestionsAtOnceGetsAllAnswers(t *testing.T) {
	h := connect(t, setup{})
	answers := make(chan object, 10)
	for i := range cap(answers) {
		go func() {
			res, err := h.try("run_command", object{"session": fmt.Sprint("s", i), "command": "sleep 0.1; echo $((6*7))"})
			assert.NoError(t, err)
			answers <- structured(t, res)
		}()
	}
	testenv.Await(t, "the calls", func() bool { return len(h.sessions.List()) == cap(answers) })
	require.NoError(t, h.toServer.Close())
	for range cap(answers) {
		assert.Equal(t, "42\n", (<-answers)["stdout"])
	}
}

func TestSessionsAreListedForkedRolledBackAndClosed(t *testing.T) {
	h := connect(t, setup{})
	_, text := h.call("session_list", nil)
	assert.Contains(t, text, "there are no sessions")
	h.run("a", "cd /tmp; x=1")
	out, _ := h.call("session_checkpoint", object{"session": "a", "checkpoint": "one"})
	assert.Equal(t, []any{"one"}, out["checkpoints"])
	out, _ = h.call("session_fork", object{"session": "a", "new_session": "b"})
	assert.Equal(t, "/tmp", out["dir"])
	h.run("a", "x=2; cd /")
	assert.Equal(t, "1 /tmp\n", h.run("b", "echo $x $PWD")["stdout"])
	out, _ = h.call("session_rollback", object{"session": "a", "checkpoint": "one"})
	assert.Equal(t, "/tmp", out["dir"])
	assert.Equal(t, "1\n", h.run("a", "echo $x")["stdout"])
	out, text = h.call("session_list", nil)
	require.Len(t, out["sessions"], 2)
	assert.Contains(t, text, "a: idle, in /tmp; 3 commands, 0 jobs, 0 terminals; checkpoints: one")
	h.call("session_close", object{"session": "a"})
	out, _ = h.call("session_list", nil)
	require.Len(t, out["sessions"], 1)
	assert.Equal(t, "\n", h.run("a", "echo $x")["stdout"])

	assert.Contains(t, h.refuse("session_fork", object{"session": "a", "new_session": "b"}), "there is one of that name")
	assert.Contains(t, h.bad("session_fork", object{"session": "a", "new_session": "/"}), "no name")
	assert.Contains(t, h.refuse("session_rollback", object{"session": "b", "checkpoint": "x"}), "there are no checkpoints")
}

func TestOnlyTheToolsThatAreAskedForAreOffered(t *testing.T) {
	h := connect(t, setup{server: mcpserver.Options{Tools: []string{"shell"}}})
	tools, err := h.ListTools(testenv.Context(t), nil)
	require.NoError(t, err)
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	assert.ElementsMatch(t, []string{"run_command", "read_output", "interrupt"}, names)
	_, err = mcpserver.New(h.sessions, &mcpserver.Options{Tools: []string{"shells"}})
	require.ErrorContains(t, err, "there are shell, sessions, jobs, terminals")
}

func TestWhoWaitsForItsTurnIsToldBehindWhat(t *testing.T) {
	told := make(chan string, 1000)
	h := connect(t, setup{
		server: mcpserver.Options{Progress: 10 * time.Millisecond},
		client: mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { told <- req.Params.Message }},
	})
	begun := filepath.Join(t.TempDir(), "begun")
	done := make(chan error, 2)
	call := func(command string, token any) {
		params := &mcp.CallToolParams{Name: "run_command", Arguments: object{"session": "s", "command": command}}
		if token != nil {
			params.SetProgressToken(token)
		}
		_, err := h.CallTool(testenv.Context(t), params)
		done <- err
	}
	go call("echo >"+begun+"; sleep 1000", nil)
	testenv.AwaitFile(t, begun)
	go call("echo second", "token")
	assert.Contains(t, <-told, "waits for its turn behind: echo >")
	h.call("interrupt", object{"session": "s"})
	require.NoError(t, <-done)
	require.NoError(t, <-done)
}

func TestATimeoutCanMoveCommandsToTheBackgroundByDefault(t *testing.T) {
	testenv.Slow(t)
	h := connect(t, setup{server: mcpserver.Options{Timeout: 50 * time.Millisecond, OnTimeout: "background"}})
	out := h.run("s", "echo one; sleep 1000")
	assert.Equal(t, "background", out["status"])
	out, _ = h.call("run_command", object{"session": "s", "command": "sleep 1000", "on_timeout": "stop"})
	assert.Equal(t, "stopped", out["status"])
	out, _ = h.call("run_command", object{"session": "s", "command": "cat; sleep 1000", "stdin": "x"})
	assert.Equal(t, "stopped", out["status"], "what has stdin cannot be moved")
	tools, err := h.ListTools(testenv.Context(t), nil)
	require.NoError(t, err)
	for _, tool := range tools.Tools {
		if tool.Name == "run_command" {
			assert.Contains(t, tool.Description, "After 50ms it is moved to the background")
		}
	}
	_, err = mcpserver.New(h.sessions, &mcpserver.Options{OnTimeout: "explode"})
	require.ErrorContains(t, err, "explode")
}

func TestWhatIsNoMessageIsAnsweredAndNoMore(t *testing.T) {
	testenv.Slow(t)
	sessions, err := session.New(nil)
	require.NoError(t, err)
	server, err := mcpserver.New(sessions, nil)
	require.NoError(t, err)
	in, toServer := pipe(t)
	fromServer, out := pipe(t)
	served := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 4*testenv.Patience) // 65 MB take a busy machine 30 s.
	defer cancel()
	go func() { served <- server.ServeStdio(ctx, in, out) }()
	answers := bufio.NewScanner(fromServer)
	for _, row := range []struct {
		line string
		code float64
	}{
		{"hello", -32700}, {"{}", -32600}, {"null", -32600}, {"[]", -32600}, {"[1]", -32600}, {"\ufeff{}", -32700},
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}`, -32700},
		{`{"jsonrpc":"2.0","id":{},"method":"ping"}`, -32600},
		{strings.Repeat("[", 100000), -32700},
		{`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("x", 65<<20) + `"}}`, -32600},
	} {
		_, err := toServer.WriteString("\n" + row.line + "\n")
		require.NoError(t, err)
		require.True(t, answers.Scan(), "%.60s", row.line)
		var answer struct {
			ID    any
			Error struct {
				Code    float64
				Message string
			}
		}
		require.NoError(t, json.Unmarshal(answers.Bytes(), &answer))
		assert.Equal(t, row.code, answer.Error.Code, "%.60s", row.line)
		assert.Nil(t, answer.ID)
		assert.NotEmpty(t, answer.Error.Message)
	}
	// And it goes on, to a last line without an end.
	_, err = toServer.WriteString(`{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	require.NoError(t, err)
	require.NoError(t, toServer.Close())
	require.True(t, answers.Scan())
	assert.Contains(t, answers.Text(), `"id":7`)
	require.NoError(t, <-served)
	require.NoError(t, fromServer.Close())
	require.NoError(t, server.Close())
	require.NoError(t, sessions.Close())
}

func TestErrorsAreInTheWordsOfTheProgram(t *testing.T) {
	h := connect(t, setup{server: mcpserver.Options{Explain: func(err error) string { return "explained: " + err.Error() }}})
	assert.Contains(t, h.refuse("run_command", object{"command": "ls", "dir": "/no/such"}), "explained: ")
}

func TestAClientThatReadsNothingIsGivenUp(t *testing.T) {
	testenv.Slow(t)
	sessions, err := session.New(nil)
	require.NoError(t, err)
	server, err := mcpserver.New(sessions, &mcpserver.Options{AnswerLimit: 200000})
	require.NoError(t, err)
	in, toServer := pipe(t)
	fromServer, out := pipe(t)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_command","arguments":{"command":"head -c 200000 /dev/zero | tr '\\0' x"}}}`,
	} {
		_, err := toServer.WriteString(line + "\n")
		require.NoError(t, err)
	}
	served := make(chan error, 1)
	go func() { served <- server.ServeStdio(testenv.Context(t), in, out) }()
	// The client leaves when the answer is on its way: a call that still runs a second after
	// that is cancelled, and what a busy machine has printed by then fits into the pipe.
	answers := bufio.NewReaderSize(fromServer, 1<<10)
	_, err = answers.ReadString('\n')
	require.NoError(t, err)
	_, err = answers.Peek(1)
	require.NoError(t, err)
	require.NoError(t, toServer.Close())
	require.ErrorContains(t, <-served, "does not read its answers")
	require.NoError(t, server.Close())
	require.NoError(t, sessions.Close())
	require.NoError(t, fromServer.Close()) // Now what hangs ends.
	require.ErrorIs(t, server.ServeStdio(testenv.Context(t), in, out), session.ErrClosed)
}

func TestACallThatIsCancelledTakesNoNotices(t *testing.T) {
	h := connect(t, setup{})
	h.run("s", "true")
	s, err := h.sessions.Get("s")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(testenv.Context(t))
	begun := filepath.Join(t.TempDir(), "begun")
	done := make(chan error, 1)
	go func() {
		_, err := h.CallTool(ctx, &mcp.CallToolParams{Name: "run_command", Arguments: object{"session": "s", "command": "echo >" + begun + "; sleep 1000"}})
		done <- err
	}()
	testenv.AwaitFile(t, begun)
	s.Notify("news")
	cancel()
	require.Error(t, <-done)
	assert.Contains(t, h.run("s", "true")["notices"], "news")
}

func TestThatBashWasReplacedIsToldThoughTheNextCallFails(t *testing.T) {
	h := connect(t, setup{})
	pid := strings.TrimSpace(h.run("s", "echo $$")["stdout"].(string))
	h.run("other", "kill -9 "+pid)
	testenv.Await(t, "the end of bash", func() bool { return !testenv.Alive(atoi(t, pid)) })
	h.refuse("run_command", object{"session": "s", "command": "true", "dir": "/no/such"})
	out := h.run("s", "true")
	assert.Contains(t, fmt.Sprint(out["notices"], out["restart"]), "signal 9")
}

func TestWhatACommandInTheBackgroundTakesAlongIsTold(t *testing.T) {
	l := listen(t, "2025-11-25")
	l.run("s", "sleep 1000 & until [[ /proc/$!/exe -ef $(type -P sleep) ]]; do :; done")
	out, _ := l.call("run_command", object{"session": "s", "command": "sleep 1000", "timeout_seconds": 0.1, "on_timeout": "background"})
	assert.Contains(t, fmt.Sprint(out["restart"]), "sleep 1000")
	<-l.listed // Its log is a resource.
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	require.NoError(t, err)
	return n
}
