package main

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A session without a name ends with limpet, also where limpet has no time to say goodbye. One with a name stays.
func TestWhatHasNoNameOnAnotherMachineEndsWithALimpetThatIsKilled(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	tap, far := tapOf(t, p)
	on := []string{"--on", tap.Target()}
	list := func() string { return p.limpet(append([]string{"session", "list", "-q"}, on...)...) }
	p.limpet(append([]string{"run", "-s", "named"}, append(on, "true")...)...)
	ran, again := filepath.Join(far, "ran"), filepath.Join(far, "again")
	const runs = "trap '' INT TERM; echo >ran; until [[ -e again ]]; do sleep 0.02; done; echo again; sleep 1000"
	for name, row := range map[string]struct {
		args []string
		end  func(p *os.Process, out *bufio.Reader)
	}{
		"a script":    {[]string{runs}, func(p *os.Process, _ *bufio.Reader) { require.NoError(t, p.Kill()) }},
		"two scripts": {[]string{runs, "true"}, func(p *os.Process, _ *bufio.Reader) { require.NoError(t, p.Kill()) }},
		"SIGINT twice": {[]string{runs}, func(p *os.Process, _ *bufio.Reader) {
			testenv.Await(t, "limpet to end", func() bool { // The first one is taken note of a moment later.
				return p.Signal(syscall.SIGINT) != nil || !testenv.Alive(p.Pid)
			})
		}},
		"the connection was dialled again": {[]string{runs}, func(p *os.Process, out *bufio.Reader) {
			tap.Cut()
			require.NoError(t, os.WriteFile(again, nil, 0o600))
			line, err := out.ReadString('\n')
			require.NoError(t, err)
			assert.Equal(t, "again\n", line)
			require.NoError(t, p.Kill())
		}},
	} {
		cmd := p.command(append(append([]string{"run"}, on...), row.args...)...)
		pipe, err := cmd.StdoutPipe()
		require.NoError(t, err)
		out := bufio.NewReader(pipe)
		require.NoError(t, cmd.Start())
		testenv.AwaitFile(t, ran)
		assert.Contains(t, list(), "run-", name)
		row.end(cmd.Process, out)
		_, _ = io.Copy(io.Discard, out) // Until limpet has ended.
		require.Error(t, cmd.Wait())
		testenv.Await(t, name+": the session to end", func() bool { return list() == "named" })
		require.NoError(t, os.Remove(ran))
		_ = os.Remove(again) // Most do not have it.
	}

	argv := []string{"XDG_STATE_HOME=" + p.state, "XDG_RUNTIME_DIR=" + p.runtime, "GORACE=atexit_sleep_ms=0", p.mark, "limpet", "repl"}
	tm := programOnTerminal(t, p.home, "xterm", "env", append(argv, on...)...)
	tm.sees("$ ")
	assert.Contains(t, list(), "run-")
	require.NoError(t, tm.cmd.Process.Kill())
	testenv.Await(t, "the session of a prompt to end", func() bool { return list() == "named" })

	c := p.stdio(append(on, "--keep=agent")...)
	run(t, c.ClientSession, "x=1")
	assert.Contains(t, list(), "mcp-")
	require.NoError(t, c.cmd.Process.Kill())
	c.exits(-1)
	testenv.Await(t, "the session of limpet mcp to end", func() bool { return !strings.Contains(list(), "mcp-") })
	assert.Equal(t, "named\nagent", list())
	p.limpet(append([]string{"session", "close", "agent", "named"}, on...)...)
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// A limpet that only stands still keeps its session.
func TestALimpetThatStandsStillKeepsItsSessionOnAnotherMachine(t *testing.T) {
	p := newMCPPlace(t)
	target, far := tappedMachine(t, p)
	cmd := p.command("run", "--on", target, "echo >ran; until [[ -e go ]]; do sleep 0.02; done; exit 3")
	require.NoError(t, cmd.Start())
	testenv.AwaitFile(t, filepath.Join(far, "ran"))
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	testenv.AwaitStopped(t, cmd.Process.Pid)
	p.limpet("run", "--on", target, "true")
	assert.Contains(t, p.limpet("session", "list", "--on", target, "-q"), "run-")
	require.NoError(t, os.WriteFile(filepath.Join(far, "go"), nil, 0o600))
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	require.Error(t, cmd.Wait())
	assert.Equal(t, 3, cmd.ProcessState.ExitCode())
	assert.Empty(t, p.limpet("session", "list", "--on", target, "-q"))
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}
