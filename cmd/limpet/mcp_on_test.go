package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// An agent of a host here works on another machine, over connections that break, and finds its shell when the host is started again.
func TestMCPOnAnotherMachine(t *testing.T) {
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
