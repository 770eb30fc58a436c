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
	p.env = []string{"SECRET_OF_LIMPET_TOKEN=hush-hush"}
	c := p.stdio()
	out := run(t, c.ClientSession, `id -u; for f in /proc/$PPID/fd/*; do (echo noise >$f) 2>/dev/null && echo wrote; done; cat /proc/$PPID/environ 2>/dev/null`)
	assert.Equal(t, "65534\n", out)
	p.busy(c.ClientSession) // All of it works all the same.
	require.NoError(t, c.in.Close())
	c.exits(0)
	p.gone("closed")
}
