package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// limpet runs another command of limpet's where the limpets of a test are.
func (p *mcpPlace) limpet(args ...string) string {
	p.t.Helper()
	out, err := p.command(args...).CombinedOutput()
	require.NoError(p.t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

// command is one of limpet's there.
func (p *mcpPlace) command(args ...string) *exec.Cmd {
	cmd := exec.Command("limpet", args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "HOME="+p.home, "XDG_STATE_HOME="+p.state, "XDG_RUNTIME_DIR="+p.runtime, "GORACE=atexit_sleep_ms=0", p.mark)
	return cmd
}

// closeKept ends all sessions that are kept there.
func (p *mcpPlace) closeKept() {
	p.t.Helper()
	if names := strings.Fields(p.limpet("session", "list", "-q")); len(names) > 0 {
		p.limpet(append([]string{"session", "close"}, names...)...)
	}
	p.gone("after the last session was closed")
}

// leaves has a client say goodbye, as a host does.
func (c *mcpClient) leaves() {
	c.t.Helper()
	require.NoError(c.t, c.in.Close())
	c.exits(0)
}

// said is what an answer has of a field that is a text, or a list of them.
func saidIn(t *testing.T, out map[string]any, field string) string {
	t.Helper()
	b, err := json.Marshal(out[field])
	require.NoError(t, err)
	return string(b)
}

// An agent whose host is started again finds its shell, its jobs and its terminals, and is told so.
func TestMCPKeptSessionsOutliveTheirHost(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	c := p.stdio("--keep")
	out := tool(t, c.ClientSession, "run_command", map[string]any{"command": "cd /usr; x=1; alias greet='echo hello'"})
	name, _ := out["session"].(string)
	assert.Regexp(t, `^agent-dir-[0-9a-f]{8}$`, name)
	assert.NotContains(t, saidIn(t, out, "notices"), "from before")
	out = tool(t, c.ClientSession, "run_command", map[string]any{"command": "exec sleep 1000", "background": true})
	job := out["job"].(map[string]any)["job"].(string)
	out = tool(t, c.ClientSession, "terminal_create", map[string]any{"argv": []any{"cat"}, "settle_seconds": 0})
	term := out["terminal"].(map[string]any)["terminal"].(string)
	tool(t, c.ClientSession, "run_command", map[string]any{"command": "y=other", "session": "second"})
	c.leaves()

	c = p.stdio("--keep")
	out = tool(t, c.ClientSession, "run_command", map[string]any{"command": "echo $PWD $x; greet", "session": "default"})
	assert.Equal(t, "/usr 1\nhello\n", out["stdout"])
	assert.Equal(t, name, out["session"])
	told := saidIn(t, out, "notices")
	assert.Contains(t, told, "this session is from before the host was started, as it was left: in /usr, last used")
	assert.Contains(t, told, job)
	assert.Contains(t, told, term)
	out = tool(t, c.ClientSession, "run_command", map[string]any{"command": "echo $y", "session": "second"})
	assert.Equal(t, "other\n", out["stdout"])
	assert.Contains(t, saidIn(t, out, "notices"), "from before")
	out = tool(t, c.ClientSession, "job_list", map[string]any{"session": "default"})
	assert.Contains(t, saidIn(t, out, "jobs"), job)
	tool(t, c.ClientSession, "terminal_send_keys", map[string]any{"terminal": term, "keys": []any{"typed", "Enter"}})

	// A person looks in.
	assert.Equal(t, "/usr 1", p.limpet("run", "-s", name, "echo $PWD $x"))
	assert.Contains(t, p.limpet("jobs", "-s", name, "list"), job)
	assert.Contains(t, p.limpet("term", "-s", name, "screen", term), "typed")

	// What an agent closes begins anew, and its keeper stays.
	tool(t, c.ClientSession, "session_close", map[string]any{"session": "default"})
	assert.Equal(t, "none\n", run(t, c.ClientSession, "echo ${x-none}"))
	out = tool(t, c.ClientSession, "run_command", map[string]any{"command": "echo $y", "session": "second"})
	assert.Equal(t, "other\n", out["stdout"])
	c.leaves()
	p.closeKept()
}

// What runs when the host is killed runs on, and the next one is told.
func TestMCPKeptCommandsOutliveTheirHost(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	c := p.stdio("--keep")
	run(t, c.ClientSession, "x=1")
	go func() { // It gets no answer.
		_, _ = c.CallTool(context.Background(), &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{
			"command": "echo >begun; until [ -e go ]; do sleep 0.01; done; echo done >over",
		}})
	}()
	testenv.AwaitFile(t, filepath.Join(p.dir, "begun"))
	require.NoError(t, c.cmd.Process.Kill())
	c.exits(-1)
	testenv.Await(t, "the command to be a job", func() bool { return strings.Contains(p.limpet("session", "list", "--json"), `"jobs":1`) })

	c = p.stdio("--keep")
	told := ""
	testenv.Await(t, "what became of the command to be told", func() bool {
		out := tool(t, c.ClientSession, "run_command", map[string]any{"command": "echo $x"})
		assert.Equal(t, "1\n", out["stdout"])
		told += saidIn(t, out, "notices")
		return strings.Contains(told, "a call was cancelled (echo \\u003ebegun;")
	})
	assert.Contains(t, told, "job-")
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "go"), nil, 0o600))
	testenv.AwaitFile(t, filepath.Join(p.dir, "over"))
	c.leaves()
	p.closeKept()
}

// Two hosts at a time have a session each, unless they ask for the same by its name.
func TestMCPKeptSessionsOfTwoHosts(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	one, two := p.stdio("--keep"), (*mcpClient)(nil)
	run(t, one.ClientSession, "x=one")
	two = p.stdio("--keep")
	assert.Equal(t, "none\n", run(t, two.ClientSession, "echo ${x-none}; x=two"))
	one.leaves()
	two.leaves()
	three := p.stdio("--keep")
	assert.Equal(t, "one\n", run(t, three.ClientSession, "echo $x"))
	three.leaves()

	p.limpet("run", "-s", "shared", "x=shared")
	four, five := p.stdio("--keep=shared"), p.stdio("--keep=shared")
	assert.Equal(t, "shared\n", run(t, four.ClientSession, "echo $x; x=four"))
	assert.Equal(t, "four\n", run(t, five.ClientSession, "echo $x"))
	p.limpet("session", "close", "shared")
	four.exits(codeFailed)
	five.exits(codeFailed)
	assert.Contains(t, four.said.String(), "limpet: the session was ended, or upgraded: start this again")
	p.closeKept()
}

// A host that leaves takes nothing away from others: what a person runs is left alone, and what the agent has waited with
// is not begun.
func TestMCPKeptCommandsOfOthersAreLeftAlone(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	p.limpet("run", "-s", "shared", "true")
	person := make(chan string, 1)
	go func() {
		person <- p.limpet("run", "-s", "shared", "echo >begun; until [ -e go ]; do sleep 0.01; done; x=person; echo over")
	}()
	testenv.AwaitFile(t, filepath.Join(p.dir, "begun"))
	c := p.stdio("--keep=shared")
	go func() { // It gets no answer.
		_, _ = c.CallTool(context.Background(), &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": "echo >agent"}})
	}()
	testenv.Await(t, "the agent's command to wait", func() bool {
		return regexp.MustCompile(`(?m)^commands +3$`).MatchString(p.limpet("session", "info", "shared"))
	})
	c.leaves()
	require.NoError(t, os.WriteFile(filepath.Join(p.dir, "go"), nil, 0o600))
	assert.Equal(t, "over", <-person)
	assert.Equal(t, "person", p.limpet("run", "-s", "shared", "echo $x"))
	assert.NoFileExists(t, filepath.Join(p.dir, "agent"))
	p.closeKept()
}

// A session is not used by an agent as another one than it was made.
func TestMCPKeptSessionsAreWhatTheyWereMadeAs(t *testing.T) {
	p := newMCPPlace(t)
	c := p.stdio("--keep=build", "--env", "E=exported", "--init", initFile(t, "f() { echo from init; }"))
	assert.Equal(t, "exported from init\n", run(t, c.ClientSession, "echo $E $(f)"))
	c.leaves()
	said := p.refused("--keep=build")
	assert.Regexp(t, `session "build" is there, and was made with other flags \(--init=\S+ --keep-env=E\): limpet session close build ends it, or --keep=NAME names another one`, said)
	p.limpet("run", "-s", "plain", "true")
	assert.Contains(t, p.refused("--keep=plain", "--max-sessions", "2"), "was made with other flags (none)")
	assert.Contains(t, p.refused("--keep", "--http", "0"), "--http cannot go with --keep")
	assert.Contains(t, p.refused("--keep=a/b"), "no name: wants 1 to 64 letters")
	p.closeKept()
}

// In a sandbox it is in a sandbox, now and later.
func TestMCPKeptSessionsInASandbox(t *testing.T) {
	if _, err := sandbox.Probe(t.Context()); err != nil {
		t.Skipf("no sandbox is to be had here: %q", err)
	}
	p := newMCPPlace(t)
	c := p.stdio("--keep", "--sandbox", "workspace-write")
	try := "x=1; echo >inside; echo >" + p.state + "/outside || echo refused; ls " + p.state + "/limpet/keep"
	assert.Equal(t, "refused\n", run(t, c.ClientSession, try))
	c.leaves()
	c = p.stdio("--keep", "--sandbox", "workspace-write")
	out := tool(t, c.ClientSession, "run_command", map[string]any{"command": "echo $x; " + try})
	assert.Equal(t, "1\nrefused\n", out["stdout"])
	assert.Equal(t, "refused", p.limpet("run", "-s", out["session"].(string), "{ echo >"+p.state+"/outside; } 2>/dev/null || echo refused"))
	assert.FileExists(t, filepath.Join(p.dir, "inside"))
	c.leaves()
	p.closeKept()
}

// refused is what limpet says that does not serve.
func (p *mcpPlace) refused(args ...string) string {
	p.t.Helper()
	cmd := exec.Command("limpet", append([]string{"mcp"}, args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "HOME="+p.home, "XDG_STATE_HOME="+p.state, "XDG_RUNTIME_DIR="+p.runtime, "GORACE=atexit_sleep_ms=0", p.mark)
	out, err := cmd.CombinedOutput()
	require.Error(p.t, err, "%s", out)
	return string(out)
}

func initFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(testenv.TempDir(t), "init")
	require.NoError(t, os.WriteFile(file, []byte(text+"\n"), 0o600))
	return file
}
