package main

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// What an agent wants on another machine is answered by a person here.
func TestAPersonAnswersWhatIsAskedOnAnotherMachine(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	t.Setenv("XDG_STATE_HOME", p.state)
	t.Setenv("XDG_RUNTIME_DIR", p.runtime)
	far := testenv.TempDir(t)
	target := "exec:env -i HOME=" + far + " GORACE=atexit_sleep_ms=0 " + p.mark + " sh"
	c := p.stdio("--on", target, "--keep=agent", "--approve", "ask", "--tools", "shell")

	waits := calls(t, c.ClientSession, "run_command", runs("touch ~/one"))
	listed := func(args ...string) string {
		return p.limpet(append([]string{"approvals", "list", "--json"}, args...)...)
	}
	testenv.Await(t, "the question", func() bool { return listed("--on", target) != "" })
	assert.Empty(t, listed(), "nothing is asked on this machine")
	var q struct{ ID, Session, Dir, Script string }
	require.NoError(t, json.Unmarshal([]byte(listed("--on", target)), &q))
	assert.Equal(t, "touch ~/one", q.Script)
	assert.Equal(t, "agent", q.Session)
	assert.Equal(t, far, q.Dir)

	// A person is asked at a terminal of this machine, and of no session.
	out, err := exec.Command("setsid", "-w", "limpet", "approvals", "answer", "--on", target).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "a person answers at a terminal: limpet has none")

	// Nor is what runs in a session, whatever it takes out of its environment: the other machine could not see that.
	t.Run("in a session", func(t *testing.T) {
		t.Setenv(environ.SessionVar, "x")
		script := `env -u ` + environ.SessionVar + ` limpet approvals answer --on "$0"; exit $?`
		tm := programOnTerminal(t, p.home, "xterm", "sh", "-c", script, target)
		tm.sees("what runs in a session, a job or a terminal of limpet cannot answer")
		tm.exits(codeFailed)
	})

	tm := onTerminal(t, p.home, "xterm", "approvals", "answer", "--on", target, q.ID[:6])
	tm.sees(" on " + target + ", session agent, asks: may this run in " + far)
	tm.sees("  | touch ~/one\r\n")
	tm.types("y")
	tm.exits(0)
	assert.NotContains(t, tm.seen+tm.unread, "always", "its rules are over there")
	assert.False(t, (<-waits).failed)
	require.FileExists(t, filepath.Join(far, "one"))

	tm = onTerminal(t, p.home, "xterm", "approvals", "answer", "--wait", "--on", target)
	tm.sees("waits for questions, until Ctrl-C")
	waits = calls(t, c.ClientSession, "run_command", runs("touch ~/two"))
	tm.sees("  | touch ~/two\r\n")
	tm.types("r")
	tm.sees("no, because: ")
	tm.types("call it three\n")
	refused := <-waits
	assert.True(t, refused.failed)
	assert.Contains(t, refused.text, "the answer was no: call it three.")
	require.NoFileExists(t, filepath.Join(far, "two"))
	tm.types(ctrlC)
	tm.exits(codeSignal + int(syscall.SIGINT))
	c.leaves()
	p.limpet("session", "close", "--on", target, "agent")
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// A target that is not reached is said as for every other command.
func TestApprovalsOnAMachineThatIsNotReached(t *testing.T) {
	out, err := exec.Command("limpet", "approvals", "list", "--on", "exec:false").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), `reach "exec:false": the machine was not reached: false ended with exit code 1`)
	out, err = exec.Command("limpet", "approvals", "list", "--on", "nowhere://x").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "is no target; use ssh://")
}
