package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// The socket is like that of socat: each connection is the standard input and output of a program.
func TestLimpetConnectIsOfferedAtASocket(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	home := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(home, "here"))
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(home, "config"))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(home, "s"), Net: "unix"})
	require.NoError(t, err)
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close() // It ends the Accept.
		all.Wait()    // With all that was started.
	})
	all.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			f, err := c.File()
			_ = c.Close() // The program has its own.
			if !assert.NoError(t, err) {
				return
			}
			cmd := exec.Command("limpet", "connect", "--stdio")
			cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
			cmd.Stdin, cmd.Stdout = f, f
			all.Go(func() {
				assert.NoError(t, cmd.Run())
				_ = f.Close() // As above.
			})
		}
	})
	limpet := func(args ...string) string {
		out, err := exec.Command("limpet", args...).CombinedOutput()
		assert.NoError(t, err, "%q: %s", args, out)
		return string(out)
	}
	t.Cleanup(func() {
		limpet("hosts", "close", "--all")
		endKept(filepath.Join(home, ".local/state/limpet/keep"))
	})
	target := "unix://" + home + "/s"
	assert.Equal(t, home+"\n", limpet("run", "--on", target, "cd; pwd"))
	limpet("hosts", "add", "dev", target)
	limpet("run", "--on", "dev", "-s", "s", "x=kept")
	assert.Equal(t, "kept\n", limpet("run", "--on", "dev", "-s", "s", "echo $x"))
	assert.Contains(t, limpet("hosts", "check", "dev"), "dev")
}
