package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// At a terminal a copy shows how far it is, and Ctrl-C ends it at once.
func TestACopyAtATerminal(t *testing.T) {
	testenv.Slow(t)
	home := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "state"))
	t.Cleanup(func() { _ = exec.Command("limpet", "hosts", "close", "--all").Run() }) // There is one, mostly.
	there := filepath.Join(home, "there")
	require.NoError(t, os.Mkdir(there, 0o700))
	on := "exec:env -i HOME=" + there + " GORACE=atexit_sleep_ms=0 sh"
	large := filepath.Join(home, "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 4<<30))

	tm := onTerminal(t, home, "xterm", "hosts", "copy", "--on", on, large, ":")
	tm.sees("% of 4295.0 MB, ")
	tm.sees(" MB/s  large\x1b[K")
	tm.types(ctrlC)
	tm.sees("\r\x1b[Klimpet: what was copied stays; the same command goes on from there\r\n")
	tm.exits(130)
	tm.isAsBefore()
	parts, err := filepath.Glob(filepath.Join(there, ".limpet-part-*"))
	require.NoError(t, err)
	assert.Len(t, parts, 1)

	require.NoError(t, os.Truncate(large, 100<<20))
	require.NoError(t, os.Remove(parts[0]))
	tm = onTerminal(t, home, "dumb", "hosts", "copy", "--on", on, large, ":")
	tm.exits(0)
	assert.Empty(t, tm.unread, "such a terminal has no line that can be painted over")
	st, err := os.Stat(filepath.Join(there, "large"))
	require.NoError(t, err)
	assert.EqualValues(t, 100<<20, st.Size())
}
