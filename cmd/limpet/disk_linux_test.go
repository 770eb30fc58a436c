package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// Nothing is started whose end nobody could be told, and it is said what to do. What runs goes on, and it is told how it ends.
func TestOnAFullDiskItIsSaidWhatToDoAndHowThingsEnd(t *testing.T) {
	testenv.Slow(t)
	state := testenv.MountTmpfs(t, "size=512k", 0)
	limpet := func(code int, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(testenv.Context(t), "limpet", args...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
		out, err := cmd.CombinedOutput()
		require.NotNil(t, cmd.ProcessState, "%v", err)
		assert.Equal(t, code, cmd.ProcessState.ExitCode(), "%q: %s", args, out)
		return strings.TrimSpace(string(out))
	}
	limpet(0, "run", "-s", "full", "true")
	ends := limpet(0, "jobs", "start", "--stdin", "read -r line; exit $line")
	stopped := limpet(0, "jobs", "start", "sleep 1000")

	f, err := os.Create(filepath.Join(state, "ballast"))
	require.NoError(t, err)
	for block := make([]byte, 4096); err == nil; {
		_, err = f.Write(block)
	}
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.NoError(t, f.Close())

	for _, args := range [][]string{
		{"jobs", "start", "true"}, {"jobs", "-s", "full", "start", "true"}, {"term", "start", "true"}, {"term", "-s", "full", "start", "true"},
		{"run", "-s", "full", "--id", "once", "true"}, {"run", "-s", "new", "true"}, {"session", "fork", "full", "new"},
	} {
		said := limpet(125, args...)
		assert.Regexp(t, "no space left on device; make room there$", said, "%q", args)
	}
	limpet(0, "jobs", "submit", ends, "7")
	assert.Contains(t, limpet(7, "jobs", "wait", ends), "exited: exit 7")
	assert.Contains(t, limpet(0, "jobs", "stop", stopped), "stopped on request")
	limpet(130, "jobs", "wait", stopped)
	limpet(0, "session", "close", "full")
	assert.Contains(t, limpet(0, "session", "list", "--all"), "was closed")
}

func TestOnAReadOnlyFileSystemASessionIsRefusedWithARemedy(t *testing.T) {
	state := testenv.MountTmpfs(t, "size=64k", unix.MS_RDONLY)
	cmd := exec.CommandContext(testenv.Context(t), "limpet", "run", "-s", "new", "true")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+state)
	out, err := cmd.CombinedOutput()
	require.NotNil(t, cmd.ProcessState, "%v", err)
	assert.Equal(t, 125, cmd.ProcessState.ExitCode(), "%s", out)
	assert.Regexp(t, "^limpet: .*read-only file system; set XDG_STATE_HOME to a directory that can be written\n$", string(out))
}
