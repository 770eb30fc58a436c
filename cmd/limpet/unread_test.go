package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// Behind "| head" a command ends that would print without end, also in a session that stays, which is as it was then.
func TestACommandWhoseOutputNobodyReadsIsStopped(t *testing.T) {
	testenv.Slow(t)
	p := newMCPPlace(t)
	target, far := tappedMachine(t, p)
	for _, args := range [][]string{{"-s", "s"}, {"--on", target, "-s", "s"}, {"--on", target}} {
		limpet := "limpet run -n " + quoted(args)
		for script, want := range map[string]string{
			limpet + ` 'x=5; yes' | head -1; echo ${PIPESTATUS[0]}`:                                   "y\n141\n",
			limpet + ` 'x=5; while :; do echo y; done' 'echo >made' | head -1; echo ${PIPESTATUS[0]}`: "y\n141\n",
			`{ ` + limpet + ` 'x=5; yes >&2' 2>&1 >/dev/null; echo $? >&3; } 3>&1 | grep -xm1 y`:      "y\n",
			`trap "" PIPE; ` + limpet + ` 'x=5; yes' | (trap - PIPE; head -1); echo ${PIPESTATUS[0]}`: "y\n141\n",
			limpet + ` --json 'x=5; echo a' 'echo b' | head -c 1`:                                     "{",
		} {
			cmd := exec.CommandContext(testenv.Context(t), "bash", "-c", script)
			cmd.Dir, cmd.Env = p.dir, p.command().Env
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			require.NoError(t, err, "%s: %s", script, said.String())
			assert.Equal(t, want, string(out), script)
			assert.NotContains(t, said.String(), "PIPE", script)
			if strings.HasSuffix(limpet, " s") {
				assert.Equal(t, "5", p.limpet(append(append([]string{"run", "--no-wait", "--existing"}, args...), "echo $x")...), script)
			}
		}
	}
	assert.NoFileExists(t, filepath.Join(p.dir, "made"))
	assert.NoFileExists(t, filepath.Join(far, "made"))
	p.limpet("session", "close", "s")
	assert.Equal(t, "s", p.limpet("session", "list", "--on", target, "-q"), "the others have ended")
	p.limpet("session", "close", "--on", target, "s")
	p.limpet("hosts", "close", "--all")
	p.gone("after all was closed")
}
