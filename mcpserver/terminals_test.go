package mcpserver_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
)

func TestATerminalBeginsWhereItsSessionIs(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	dir := d.run("s", "mkdir deep && cd deep && export GREETING=hello && pwd")["dir"]
	id, out := d.create(object{"session": "s", "argv": bash, "columns": 60, "rows": 10})
	terminal := of(out)
	assert.Equal(t, dir, terminal["dir"])
	assert.Equal(t, "s", terminal["session"])
	assert.Equal(t, "running", terminal["state"])
	assert.Equal(t, strings.Join(bash, " "), terminal["command"])
	assert.Equal(t, []int{60, 10}, []int{number(terminal, "columns"), number(terminal, "rows")})
	assert.Positive(t, number(terminal, "pid"))
	assert.NotContains(t, terminal, "exit_code")
	d.see(id, `^>$`)
	d.keys(id, "echo $GREETING-$((40+2)) $TERM $PAGER; pwd; stty size", "Enter")
	d.see(id, fmt.Sprintf(`^hello-42 xterm-256color\n%s\n10 60\n>$`, dir))

	d.run("s", "mkdir below")
	_, out = d.create(object{"session": "s", "command": "pwd", "dir": "below", "settle_seconds": 60})
	assert.Equal(t, fmt.Sprint(dir)+"/below", shown(out))
	id, out = d.create(nil)
	assert.Equal(t, "bash", of(out)["command"])
	assert.Equal(t, "default", of(out)["session"])
	assert.Equal(t, []int{80, 24}, []int{number(of(out), "columns"), number(of(out), "rows")})
	d.keys(id, "echo $((40+2))", "Enter")
	d.see(id, `^42$`)
}

// Nobody has to look again: the answer comes when the program is quiet.
func TestAnAnswerHasTheScreenAsItIsWhenTheProgramIsQuiet(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	_, out := d.create(object{"command": "sleep 0.3; echo late; exec sleep 1000", "settle_seconds": 60})
	assert.Equal(t, "late", shown(out), "it waits for the first output")
	_, out = d.create(object{"command": "exit 3", "settle_seconds": 60})
	assert.Equal(t, "failed", of(out)["state"])
	assert.EqualValues(t, 3, of(out)["exit_code"])
	_, out = d.create(object{"command": "while :; do echo x; sleep 0.01; done", "settle_seconds": 0.2})
	assert.Equal(t, "running", of(out)["state"], "one that is never quiet is not waited for")
	_, out = d.create(object{"command": "exec sleep 1000", "settle_seconds": 0})
	assert.Empty(t, shown(out))

	gate := filepath.Join(testenv.TempDir(t), "gate")
	id, _ := d.create(object{"command": "stty -echo; echo ready; read line; until [[ -e " + gate + " ]]; do :; done; echo got $line; exec sleep 1000"})
	d.see(id, "ready")
	out, _ = d.call("terminal_send_keys", object{"terminal": id, "keys": []string{"x", "Enter"}, "settle_seconds": 0})
	assert.NotContains(t, shown(out), "got x", "at once")
	d.run("other", ": >"+gate)
	d.see(id, "got x")
}

func TestKeysTextAndPastesAreTyped(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	dir := d.run("s", "pwd")["dir"].(string)
	id := d.bash(object{"session": "s"})
	out, text := d.call("terminal_send_keys", object{"terminal": id, "keys": []string{"echo sum-$((40+2))", "Enter"}, "settle_seconds": 60})
	assert.Equal(t, "> echo sum-$((40+2))\nsum-42\n>", shown(out))
	assert.Equal(t, object{"row": 3.0, "column": 3.0, "visible": true}, out["screen"].(object)["cursor"])
	assert.Equal(t, "> echo sum-$((40+2))\nsum-42\n>\n[terminal "+id+": running, 80x24, 57 bytes of output, cursor in row 3, column 3]", withoutPID(text))
	d.call("terminal_send_keys", object{"terminal": id, "text": "echo Enter-$((1+1))\n"})
	d.see(id, `^Enter-2$`)
	d.keys(id, "echo abx", "BSpace", "C-a", "Right", "Right", "Right", "Right", "o", "Left", "Enter")
	d.see(id, `echooabx|command not found|^oab$`)

	d.keys(id, "cat >pasted", "Enter")
	d.call("terminal_send_keys", object{"terminal": id, "paste": "one\ntwo\x03 three\n"})
	d.keys(id, "C-d")
	testenv.Await(t, "the paste", func() bool {
		b, err := os.ReadFile(filepath.Join(dir, "pasted"))
		return err == nil && string(b) == "one\ntwo  three\n"
	})
}

// The terminal drops what is typed right behind a key that sends a signal, and Escape with
// a key behind it is another key.
func TestWhatIsTypedBehindAnInterruptIsNotLost(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	id := d.bash(nil)
	for i := range 3 {
		d.keys(id, "echo sleeps; sleep 1000", "Enter")
		d.see(id, `^sleeps$`)
		d.keys(id, "C-c", fmt.Sprintf("clear; echo sum-$((%d+40))", i), "Enter")
		d.see(id, fmt.Sprintf(`^sum-%d$`, i+40))
	}
}

func TestVimEditsAFile(t *testing.T) {
	testenv.Slow(t)
	vim := installed(t, "vim", "vim.tiny", "vi")
	d := newDesk(t, setup{})
	dir := d.run("s", "pwd")["dir"].(string)
	id, _ := d.create(object{"session": "s", "argv": []string{vim, "-Nu", "NONE", "-n", "file"}})
	out := d.see(id, `"file" \[New`)
	assert.Equal(t, true, out["screen"].(object)["alternate"])
	_, text := d.call("terminal_screen", object{"terminal": id})
	assert.Contains(t, text, ", full-screen")
	d.keys(id, "i", "one", "Enter", "two")
	d.see(id, `\Aone\ntwo\n~`)
	d.keys(id, "Escape", ":wq", "Enter")
	assert.EqualValues(t, 0, d.ended(id)["exit_code"])
	b, err := os.ReadFile(filepath.Join(dir, "file"))
	require.NoError(t, err)
	assert.Equal(t, "one\ntwo\n", string(b))
}

func TestAPythonREPLIsTalkedTo(t *testing.T) {
	testenv.Slow(t)
	python := installed(t, "python3")
	d := newDesk(t, setup{})
	id, _ := d.create(object{"argv": []string{"env", "PYTHON_HISTORY=/dev/null", python, "-q"}})
	out := d.waited("prompt", object{"terminal": id, "prompt": true})
	assert.Equal(t, ">>>", out["match"])
	d.keys(id, "6*7", "Enter")
	d.see(id, `^42\n>>>$`)
	d.keys(id, "C-d")
	assert.Equal(t, "succeeded", d.ended(id)["state"])
}

func TestSeveralWhoTypeAreNotMixed(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	id, _ := d.create(object{"command": "stty -echo; echo ready; read -r a; read -r b; echo $a-$b; exec sleep 1000"})
	d.see(id, "ready")
	var typing sync.WaitGroup
	for _, letter := range []string{"a", "b"} {
		typing.Go(func() {
			keys := strings.Split(strings.Repeat(letter, 20), "")
			_, err := d.try("terminal_send_keys", object{"terminal": id, "keys": append(keys, "Enter"), "settle_seconds": 0})
			assert.NoError(t, err)
		})
	}
	typing.Wait()
	d.see(id, `^(a{20}-b{20}|b{20}-a{20})$`)
}

func TestATerminalIsResized(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	id := d.bash(nil)
	out, text := d.call("terminal_resize", object{"terminal": id, "columns": 70, "rows": 12})
	assert.Equal(t, []int{70, 12}, []int{number(of(out), "columns"), number(of(out), "rows")})
	assert.Regexp(t, `^\[terminal `+id+`: running, pid \d+, 70x12, \d+ bytes of output\]$`, text)
	d.keys(id, "stty size", "Enter")
	d.see(id, `^12 70$`)
	d.keys(id, "exit 4", "Enter")
	assert.EqualValues(t, 4, d.ended(id)["exit_code"])
	assert.Contains(t, d.refuse("terminal_resize", object{"terminal": id, "columns": 80, "rows": 24}), "the program has ended")
}

func TestWhatIsKilledCanStillBeRead(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	id, _ := d.create(object{"command": `trap '' HUP; echo shown; while :; do sleep 1000; done`})
	d.see(id, "shown")
	out, text := d.call("terminal_kill", object{"terminal": id})
	assert.Equal(t, true, out["killed"])
	assert.Equal(t, "cancelled", of(out)["state"])
	assert.Contains(t, of(out)["signal"], "terminated")
	assert.EqualValues(t, 143, of(out)["exit_code"])
	assert.Contains(t, text, "cancelled, exit code 143, signal 15 (terminated), it was closed")
	out, text = d.call("terminal_kill", object{"terminal": id})
	assert.Equal(t, false, out["killed"])
	assert.Contains(t, text, "it had ended before")
	page, _ := d.call("terminal_screen", object{"terminal": id})
	assert.True(t, strings.HasPrefix(shown(page), "shown"), shown(page))
	why := d.refuse("terminal_send_keys", object{"terminal": id, "keys": []string{"Enter"}})
	assert.Contains(t, why, "the program has ended")
	assert.Contains(t, why, "terminal_create")
	assert.Equal(t, "exited", d.waited("exited", object{"terminal": id, "text": "never"})["reason"])
}

func TestTerminalsAreListed(t *testing.T) {
	testenv.Slow(t)
	state := testenv.TempDir(t)
	d := newDesk(t, setup{sessions: session.Options{StateDir: state}})
	_, text := d.call("terminal_list", nil)
	assert.Contains(t, text, "terminal_create")
	// Others share the directory. Theirs are not ours.
	others, err := terminal.Open(filepath.Join(state, "terminals"), nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, others.Close()) }()
	other, err := others.Start(testenv.Context(t), terminal.Spec{Line: "sleep 1000"})
	require.NoError(t, err)

	first, _ := d.create(object{"session": "a", "command": "echo runs; exec sleep 1000"})
	second, _ := d.create(object{"session": "b", "command": "echo over"})
	assert.Equal(t, "succeeded", d.ended(second)["state"])
	third, _ := d.create(object{"session": "b", "command": "exit 2"})
	assert.EqualValues(t, 2, d.ended(third)["exit_code"])
	for _, row := range []struct {
		with    object
		want    []string
		omitted int
	}{
		{nil, []string{first, second, third}, 0},
		{object{"session": "b"}, []string{second, third}, 0},
		{object{"session": "none"}, []string{}, 0},
		{object{"state": "running"}, []string{first}, 0},
		{object{"state": "finished"}, []string{second, third}, 0},
		{object{"state": "all", "max_terminals": 2}, []string{first, third}, 1},
		{object{"max_terminals": 1}, []string{first}, 2},
	} {
		out, text := d.call("terminal_list", row.with)
		ids := []string{}
		for _, one := range out["terminals"].([]any) {
			ids = append(ids, one.(object)["terminal"].(string))
		}
		assert.Equal(t, row.want, ids, "%v", row.with)
		assert.Equal(t, row.omitted, number(out, "omitted"), "%v", row.with)
		for _, id := range row.want {
			assert.Contains(t, text, id)
		}
	}
	_, text = d.call("terminal_list", nil)
	assert.Contains(t, text, "session a, ")
	assert.Contains(t, text, "last line: runs")
	for _, tool := range []string{"terminal_screen", "terminal_capture", "terminal_wait", "terminal_kill"} {
		why := d.refuse(tool, object{"terminal": other.ID()})
		assert.Contains(t, why, "there is no terminal")
		assert.Contains(t, why, first, "what there is")
		assert.NotContains(t, why, second, "it has ended")
	}
	assert.False(t, other.Info().State.Ended())
}

func TestATerminalThatIsNotThere(t *testing.T) {
	d := newDesk(t, setup{})
	for tool, with := range map[string]object{
		"terminal_send_keys": {"keys": []string{"Enter"}}, "terminal_screen": {}, "terminal_capture": {}, "terminal_wait": {},
		"terminal_resize": {"columns": 80, "rows": 24}, "terminal_kill": {},
	} {
		for _, id := range []string{"none", "", "../../etc/passwd"} {
			with["terminal"] = id
			assert.Contains(t, d.refuse(tool, with), "terminal_create makes one", tool)
		}
	}
	why := d.refuse("terminal_create", object{"session": "s", "argv": []string{"no-such-program"}})
	assert.Contains(t, why, "no-such-program")
	assert.Contains(t, d.refuse("terminal_create", object{"session": "s", "dir": "/no/such/dir"}), "/no/such/dir")
	assert.Contains(t, d.refuse("terminal_screen", object{"terminal": "none"}), "none runs")
	assert.NotContains(t, d.run("s", "true"), "notices", "it was told what has failed")
}

func TestBadArgumentsOfTerminals(t *testing.T) {
	d := newDesk(t, setup{})
	id, _ := d.create(object{"command": "exec sleep 1000", "settle_seconds": 0})
	for _, row := range []struct {
		tool string
		with object
		want string
	}{
		{"terminal_create", object{"command": "a", "argv": []string{"b"}}, `only one of "command" and "argv"`},
		{"terminal_create", object{"argv": []string{}}, `"argv" names no program`},
		{"terminal_create", object{"columns": 1001}, `"columns" is 1001, and must be 1000 or less`},
		{"terminal_create", object{"rows": 501}, `"rows" is 501`},
		{"terminal_create", object{"rows": 0}, `"rows" is 0`},
		{"terminal_create", object{"settle_seconds": -1}, `"settle_seconds" is -1`},
		{"terminal_create", object{"settle_seconds": 61}, `"settle_seconds" is 61`},
		{"terminal_create", object{"session": "no name"}, "no name"},
		{"terminal_send_keys", nil, `one of "keys", "text" and "paste"`},
		{"terminal_send_keys", object{"keys": []string{}}, `one of "keys", "text" and "paste"`},
		{"terminal_send_keys", object{"text": "a", "paste": "b"}, `only one`},
		{"terminal_send_keys", object{"keys": 3}, `"keys" must be an array`},
		{"terminal_send_keys", object{"keys": []string{"a", "Ctl-C"}}, `"keys": no key "Ctl-C": did you mean "Ctrl-C"?`},
		{"terminal_send_keys", object{"keys": []string{"F99"}}, `there are F1 to F24`},
		{"terminal_screen", object{"format": "gif"}, `"format" is "gif", and must be one of "text", "png"`},
		{"terminal_capture", object{"offset": 0, "scrollback_lines": 1}, "only one of"},
		{"terminal_capture", object{"bytes": 10, "max_output_bytes": 300}, "only one of"},
		{"terminal_capture", object{"offset": 1 << 40}, `"offset" is 1099511627776, and the program has printed 0 bytes`},
		{"terminal_wait", object{"pattern": "("}, `"pattern": error parsing regexp`},
		{"terminal_wait", object{"pattern": "(?=a)"}, "no lookaround"},
		{"terminal_wait", object{"text": "a", "pattern": "b"}, `only one of "text" and "pattern"`},
		{"terminal_wait", object{"gone": true}, `"gone" goes with`},
		{"terminal_wait", object{"silence_seconds": 0}, `"silence_seconds" is 0`},
		{"terminal_resize", object{"columns": 10}, `"rows" is missing`},
		{"terminal_resize", object{"columns": 10, "rows": 0}, `"rows" is 0`},
		{"terminal_kill", object{"id": "x"}, `"terminal" and "id" mean the same`},
		{"terminal_list", object{"state": "ended"}, `"state" is "ended"`},
	} {
		arguments := object{}
		if row.tool != "terminal_create" && row.tool != "terminal_list" {
			arguments["terminal"] = id
		}
		for name, value := range row.with {
			arguments[name] = value
		}
		assert.Contains(t, d.bad(row.tool, arguments), row.want, "%s %v", row.tool, row.with)
	}
	out, _ := d.call("terminal_list", nil)
	assert.Len(t, out["terminals"], 1, "nothing was started")
}

// The end of a program is told once: by the answer that shows it, or by the next one in its
// session.
func TestTheEndOfAProgramIsToldOnce(t *testing.T) {
	testenv.Slow(t)
	d := newDesk(t, setup{})
	id := d.bash(object{"session": "s"})
	gate := filepath.Join(testenv.TempDir(t), "gate")
	other, _ := d.create(object{"session": "s", "command": "until [[ -e " + gate + " ]]; do sleep 0.01; done; exit 3", "settle_seconds": 0})
	d.run("elsewhere", ": >"+gate)
	var told []any
	testenv.Await(t, "the notice", func() bool {
		out, _ := d.call("terminal_screen", object{"terminal": id})
		notices, _ := out["notices"].([]any)
		told = append(told, notices...)
		return len(told) > 0
	})
	require.Len(t, told, 1)
	assert.Contains(t, told[0], "terminal "+other)
	assert.Contains(t, told[0], "exit 3")
	assert.NotContains(t, d.run("s", "true"), "notices")

	d.keys(id, "exit 1", "Enter")
	assert.Equal(t, "failed", d.ended(id)["state"])
	assert.NotContains(t, d.run("s", "true"), "notices")
}

func TestACreateThatIsCancelledTellsOfItsTerminal(t *testing.T) {
	d := newDesk(t, setup{})
	ctx, cancel := context.WithCancel(testenv.Context(t))
	done := make(chan error, 1)
	go func() {
		_, err := d.CallTool(ctx, &mcp.CallToolParams{Name: "terminal_create", Arguments: object{"session": "s", "command": "exec sleep 1000", "settle_seconds": 60}})
		done <- err
	}()
	testenv.Await(t, "the terminal", func() bool {
		out, _ := d.call("terminal_list", object{"state": "running"})
		list := out["terminals"].([]any)
		return len(list) > 0 && list[0].(object)["state"] == "running" // One that is starting would not start.
	})
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	var told []any
	testenv.Await(t, "the notice", func() bool {
		told, _ = d.run("s", "true")["notices"].([]any)
		return len(told) > 0
	})
	assert.Contains(t, told[0], "exec sleep 1000): it runs on")
}

func TestACreateThatIsRefusedTakesNoNotices(t *testing.T) {
	d := newDesk(t, setup{sessions: session.Options{Terminals: &terminal.Options{MaxRunning: 1}}})
	d.create(object{"session": "s", "settle_seconds": 0})
	s, err := d.sessions.Get("s")
	require.NoError(t, err)
	s.Notify("news")
	assert.Contains(t, d.refuse("terminal_create", object{"session": "s"}), "see terminal_list and terminal_kill")
	assert.Equal(t, []any{"news"}, d.run("s", "true")["notices"])
}

func TestATerminalWaitsForTheCommandOfItsSession(t *testing.T) {
	messages := make(chan string, 1000)
	d := newDesk(t, setup{
		server: mcpserver.Options{Progress: 10 * time.Millisecond},
		client: mcp.ClientOptions{ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			messages <- req.Params.Message
		}},
	})
	gate := filepath.Join(testenv.TempDir(t), "gate")
	ran := make(chan error, 1)
	go func() {
		_, err := d.try("run_command", object{"session": "s", "command": "echo begun >" + gate + ".begun; until [[ -e " + gate + " ]]; do sleep 0.01; done; export X=exported"})
		ran <- err
	}()
	testenv.AwaitFile(t, gate+".begun")
	params := &mcp.CallToolParams{Name: "terminal_create", Arguments: object{"session": "s", "command": "echo $X", "settle_seconds": 60}}
	params.SetProgressToken("token")
	created := make(chan *mcp.CallToolResult, 1)
	go func() {
		res, err := d.CallTool(testenv.Context(t), params)
		assert.NoError(t, err)
		created <- res
	}()
	assert.Contains(t, <-messages, "waits for its turn behind: echo begun")
	d.run("other", ": >"+gate)
	require.NoError(t, <-ran)
	assert.Equal(t, "exported", shown(structured(t, <-created)))
}
