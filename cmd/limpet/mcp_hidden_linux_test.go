package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// Root may look everywhere, so it is another user's limpet that is looked at.
func TestMCPHidesItsDescriptorsAndItsEnvironmentFromWhatItRuns(t *testing.T) {
	testenv.Slow(t)
	p := asNobody(t)
	p.env = []string{"SECRET_OF_LIMPET_TOKEN=hush-hush"}
	c := p.stdio()
	out := run(t, c.ClientSession, `id -u; for f in /proc/$PPID/fd/*; do (echo noise >$f) 2>/dev/null && echo wrote; done; cat /proc/$PPID/environ 2>/dev/null`)
	assert.Equal(t, "65534\n", out)
	p.busy(c.ClientSession) // All of it works all the same.
	require.NoError(t, c.in.Close())
	c.exits(0)
	p.gone("closed")
}

// asNobody is where limpets run as a user who is not root.
func asNobody(t *testing.T) *mcpPlace {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	const nobody = 65534
	p := newMCPPlace(t)
	program, err := exec.LookPath("limpet")
	require.NoError(t, err)
	program, err = filepath.EvalSymlinks(program)
	require.NoError(t, err)
	testenv.LetPass(t, filepath.Dir(program))
	for _, dir := range []string{p.dir, p.home, p.runtime} {
		testenv.LetPass(t, dir)
		require.NoError(t, os.Chown(dir, nobody, nobody))
	}
	p.as = &syscall.Credential{Uid: nobody, Gid: nobody}
	return p
}

// The helper is limpet itself, which hides.
func TestWhatAnAgentRunsFindsTheHelperOfALimpetThatHides(t *testing.T) {
	testenv.Slow(t)
	p := asNobody(t)
	require.NoError(t, os.Mkdir(p.state, 0o700))
	require.NoError(t, os.Chown(p.state, 65534, 65534))
	c := p.stdio("--askpass")
	asks := calls(t, c.ClientSession, "run_command", runs(`"$SUDO_ASKPASS" 'Password: '; echo status $?`))
	q := p.asked()
	require.NoError(t, c.in.Close()) // It ends, and nobody has answered.
	assert.Contains(t, q, "it asks: Password:")
	<-asks
	c.exits(0)
	p.gone("closed")
}

// asked waits for a question, and returns it.
func (p *mcpPlace) asked() string {
	p.t.Helper()
	var out []byte
	testenv.Await(p.t, "the question", func() bool {
		cmd := exec.Command("limpet", "approvals", "list", "--json")
		cmd.Env = append(os.Environ(), "HOME="+p.home, "XDG_STATE_HOME="+p.state, "GORACE=atexit_sleep_ms=0")
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
		out, _ = cmd.Output() // There may be none yet.
		return len(out) > 0
	})
	return string(out)
}
