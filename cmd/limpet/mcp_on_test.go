package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
)

// An agent of a host here works on another machine, over connections that break, and finds its shell when the host is started again.
func TestMCPOnAnotherMachine(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	far := testenv.TempDir(t)
	target := "exec:env -i HOME=" + far + " GORACE=atexit_sleep_ms=0 " + p.mark + " sh"
	there := []string{"--on", target, "--keep=agent", "--dir", "src", "--env", "API_TOKEN=secret", "--timeout", "20s", "--tools", "shell,jobs"}
	p.limpet("run", "--on", target, "mkdir src")
	c := p.stdio(there...)
	assert.Equal(t, filepath.Join(far, "src")+" secret\n", run(t, c.ClientSession, "echo $PWD $API_TOKEN"), "paths are those of there")
	for _, st := range testenv.Marked(p.mark) {
		if line := argv(st.PID); !strings.Contains(line, "--on\x00") { // That is what was typed here.
			assert.NotContains(t, line, "secret", "who looks at processes there")
		}
	}
	run(t, c.ClientSession, "cd /usr; x=1")
	p.cut()
	assert.Equal(t, "/usr 1\n", run(t, c.ClientSession, "echo $PWD $x"), "the agent goes on where it was")
	go func() {
		testenv.AwaitFile(t, filepath.Join(far, "begun"))
		p.cut()
		assert.NoError(t, os.WriteFile(filepath.Join(far, "go"), nil, 0o600))
	}()
	assert.Equal(t, "once\n", run(t, c.ClientSession, "echo >>~/begun; until [[ -e ~/go ]]; do sleep 0.01; done; echo once"))
	begun, err := os.ReadFile(filepath.Join(far, "begun"))
	require.NoError(t, err)
	assert.Equal(t, "\n", string(begun), "it ran once")
	c.leaves()

	c = p.stdio(there...)
	out := tool(t, c.ClientSession, "run_command", map[string]any{"command": "echo $PWD $x"})
	assert.Equal(t, "/usr 1\n", out["stdout"])
	assert.Contains(t, saidIn(t, out, "notices"), "this session is from before the host was started")
	assert.Equal(t, "/usr 1", p.limpet("run", "--on", target, "-s", "agent", "echo $PWD $x"), "a person looks in")
	c.leaves()
	assert.Equal(t, "agent", p.limpet("session", "list", "--on", target, "-q"), "what it ran in is gone")
	p.limpet("session", "close", "--on", target, "agent")

	// Without --keep nothing stays.
	c = p.stdio("--on", target)
	assert.Equal(t, "none\n", run(t, c.ClientSession, "echo ${x-none}"))
	require.NoError(t, c.cmd.Process.Signal(syscall.SIGTERM))
	c.exits(128 + int(syscall.SIGTERM))
	assert.Empty(t, p.limpet("session", "list", "--on", target, "-q"))
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// The sandbox of an agent is one of the machine that it works on, and where that has none the agent gets no shell.
func TestMCPOnAnotherMachineIsInASandboxThere(t *testing.T) {
	testenv.Slow(t)
	if _, err := sandbox.Probe(t.Context()); err != nil {
		t.Skipf("no sandbox is to be had here: %q", err)
	}
	p := newMCPPlace(t)
	far := testenv.TempDir(t)
	work := filepath.Join(far, "work")
	require.NoError(t, os.Mkdir(work, 0o700))
	sh := "env -i HOME=" + far + " GORACE=atexit_sleep_ms=0 " + p.mark + " sh"
	flags := []string{"--dir", "work", "--sandbox", "workspace-write", "--workspace", work, "--on"}

	c := p.stdio(append(flags, "exec:"+sh)...)
	run(t, c.ClientSession, "echo >inside; echo >../outside") // What is beside the workspace, if anything, goes with the sandbox.
	c.leaves()
	assert.FileExists(t, filepath.Join(work, "inside"))
	assert.NoFileExists(t, filepath.Join(far, "outside"))

	if bwrap, err := exec.LookPath("bwrap"); assert.NoError(t, err) && exec.Command("unshare", "--mount", "true").Run() == nil { // Else it cannot be hidden.
		c := p.stdio(append(flags, "exec:unshare --mount bash -c 'mount --bind /dev/null "+bwrap+" && exec "+sh+"'")...)
		res, err := c.CallTool(testenv.Context(t), &mcp.CallToolParams{Name: "run_command", Arguments: map[string]any{"command": "echo >../outside"}})
		require.NoError(t, err)
		assert.True(t, res.IsError)
		said, err := json.Marshal(res.Content)
		require.NoError(t, err)
		assert.Contains(t, string(said), "sandbox: "+bwrap+" is not trusted")
		assert.NoFileExists(t, filepath.Join(far, "outside"))
		c.leaves()
	}
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// Where a part of limpet answers, limpet is copied there besides, for limpet mcp and for the sessions that were made by it.
func TestMCPOnAMachineThatHasAPartOfLimpet(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	agents, far := testenv.TempDir(t), testenv.TempDir(t)
	out, err := exec.Command("../limpet-connect/build", agents, "linux/"+runtime.GOARCH).CombinedOutput()
	require.NoError(t, err, "%s", out)
	target := "exec:env -i HOME=" + far + " GORACE=atexit_sleep_ms=0 " + p.mark + " sh"
	there := []string{"--on", target, "--agents", agents}
	copied := func() int {
		list, err := filepath.Glob(far + "/.cache/limpet/bin/*")
		require.NoError(t, err)
		return len(list)
	}
	limpet := func(args ...string) string { return p.limpet(append(args, there...)...) }
	// That a session is new, and that limpet is copied, is said before it.
	last := func(text string) string { return text[strings.LastIndexByte(text, '\n')+1:] }
	part := last(limpet("run", "-s", "person", "readlink /proc/$PPID/exe"))
	assert.Equal(t, 1, copied())
	want, err := os.ReadFile(filepath.Join(agents, "limpet-linux-"+runtime.GOARCH))
	require.NoError(t, err)
	got, err := os.ReadFile(part)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%s is another program", part)

	c := p.stdio(append([]string{"--keep=agent"}, there...)...)
	whole := strings.TrimSpace(run(t, c.ClientSession, "x=1; readlink /proc/$PPID/exe"))
	assert.NotEqual(t, part, whole)
	assert.Equal(t, 2, copied())
	p.cut()
	assert.Equal(t, "1\n", run(t, c.ClientSession, "echo $x"), "the connection is dialled again")
	c.leaves()
	assert.Contains(t, limpet("session", "upgrade", "--force", "agent", "person"), "agent: upgraded")
	assert.Equal(t, "1 "+whole, limpet("run", "-s", "agent", "echo $x $(readlink /proc/$PPID/exe)"), "what a part of limpet cannot keep")
	assert.Equal(t, part, limpet("run", "-s", "person", "readlink /proc/$PPID/exe"))
	assert.Equal(t, 2, copied())
	limpet("session", "close", "agent", "person")
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// The limpet in the PATH there is not taken if it is a part of limpet.
func TestMCPOnAMachineWithAPartOfLimpetInItsPath(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	path, far := testenv.TempDir(t), testenv.TempDir(t)
	out, err := exec.Command("../limpet-connect/build", path, "linux/"+runtime.GOARCH).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NoError(t, os.Rename(filepath.Join(path, "limpet-linux-"+runtime.GOARCH), filepath.Join(path, "limpet")))
	target := "exec:env -i HOME=" + far + " PATH=" + path + ":" + os.Getenv("PATH") + " GORACE=atexit_sleep_ms=0 " + p.mark + " sh"
	assert.Contains(t, p.limpet("run", "--on", target, "readlink /proc/$PPID/exe"), path+"/limpet")
	c := p.stdio("--on", target)
	assert.Contains(t, run(t, c.ClientSession, "readlink /proc/$PPID/exe"), far+"/.cache/limpet/bin/")
	c.leaves()
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// argv is the command line of a process, with a zero behind each word; empty if it is gone.
func argv(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return string(b)
}

// cut kills the limpet at the other end of a connection.
func (p *mcpPlace) cut() {
	for _, st := range testenv.Marked(p.mark) {
		if strings.HasPrefix(argv(st.PID), "limpet-connect\x00") {
			_ = syscall.Kill(st.PID, syscall.SIGKILL) // It may have ended.
		}
	}
}
