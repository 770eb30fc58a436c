package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// What an error advises about a session of another machine is a command line that names the machine.
func TestWhatIsToBeDoneAboutASessionNamesItsMachine(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	p := newMCPPlace(t)
	target, _ := tappedMachine(t, p)
	fails := func(args ...string) string {
		out, err := p.command(args...).CombinedOutput()
		require.Error(t, err, "%s", out)
		return string(out)
	}
	p.limpet("run", "--on", target, "-s", "stuck", "true")
	var row struct{ PID int }
	require.NoError(t, json.Unmarshal([]byte(p.limpet("session", "list", "--json", "--on", target)), &row))
	assert.Contains(t, fails("run", "--on", target, "-s", "stuck", "--login", "true"), "limpet session close --on "+target+" stuck ends it")
	require.NoError(t, syscall.Kill(row.PID, syscall.SIGSTOP))
	testenv.AwaitStopped(t, row.PID)
	for _, flags := range [][]string{{}, {"--existing"}, {"--id", "1"}} {
		said := fails(append(append([]string{"run", "--on", target, "-s", "stuck"}, flags...), "true")...)
		assert.Contains(t, said, "limpet session close --force --on '"+target+"' stuck ends it", "%q", flags)
	}
	assert.Contains(t, p.limpet("session", "list", "--on", target), "limpet session close --force --on "+target+" stuck")
	assert.Contains(t, p.limpet("hosts", "info", target), "limpet session close --force --on "+target+" stuck")
	p.limpet("session", "close", "--force", "--on", target, "stuck")
	assert.Contains(t, fails("session", "info", "--on", target, "stuck"), "limpet session list --on "+target+" has those that there are")
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}

// A session without a name is not opened again by its name.
func TestASessionWithoutANameIsNotSaidToBeMadeAnewByIt(t *testing.T) {
	p := newMCPPlace(t)
	target, far := tappedMachine(t, p)
	cmd := p.command("run", "--on", target, "echo >ran; sleep 1000")
	var said bytes.Buffer
	cmd.Stderr = &said
	require.NoError(t, cmd.Start())
	testenv.AwaitFile(t, filepath.Join(far, "ran"))
	name := p.limpet("session", "list", "--on", target, "-q")
	require.True(t, strings.HasPrefix(name, "run-"), name)
	p.limpet("session", "close", "--on", target, name)
	require.Error(t, cmd.Wait())
	assert.Contains(t, said.String(), `limpet: command stopped: session "`+name+`" was closed (1 process signalled)`)
	assert.NotContains(t, said.String(), "anew")
	p.limpet("hosts", "close", "--all")
	p.gone("after the last connection was closed")
}
