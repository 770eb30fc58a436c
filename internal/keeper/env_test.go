package keeper_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// asCaller runs a script for a caller with an environment.
func asCaller(t *testing.T, k *keeper.Kept, script string, env ...string) string {
	t.Helper()
	res, err := k.Do(testenv.Context(t), command.Request{Script: script, UpdateEnv: keeper.CallerEnv(env)})
	require.NoError(t, err)
	return strings.TrimSuffix(res.Stdout.String(), "\n")
}

func TestCallerEnvIsWhereTheCallerIs(t *testing.T) {
	assert.Equal(t, []string{
		"SSH_AUTH_SOCK=/s", "SSH_CONNECTION", "SSH_TTY", "DISPLAY=:1", "WAYLAND_DISPLAY", "XAUTHORITY=", "DBUS_SESSION_BUS_ADDRESS", "TERM", "COLORTERM",
		"SUDO_ASKPASS", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE",
	}, keeper.CallerEnv([]string{"HOME=/h", "SSH_AUTH_SOCK=/s", "DISPLAY=:0", "DISPLAY=:1", "XAUTHORITY=", "XDISPLAY=no", "SSH_TTYX=no"}))
	assert.Len(t, keeper.CallerEnv([]string{"DISPLAY=\xff"}), 11, "what JSON would change is left alone")
}

func TestEachCallerBringsItsEnvironment(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	spec := &keeper.Spec{Dir: "/tmp", Env: append(os.Environ(), "DISPLAY=:0", "TERM=dumb", "COLORTERM=yes")}
	first, second := kept(t, r, "s", spec), kept(t, r, "s", nil)
	ask := `echo "${DISPLAY-none} $TERM ${COLORTERM-none}"`
	assert.Equal(t, ":0 dumb yes", asCaller(t, first, ask, spec.Env...))
	assert.Equal(t, ":1 xterm none", asCaller(t, second, ask, "DISPLAY=:1", "TERM=xterm"))
	assert.Equal(t, ":1 xterm none", says(t, first, ask), "a client that says nothing changes nothing")
	assert.Equal(t, "none dumb none", asCaller(t, first, ask, "TERM=dumb"))

	says(t, first, "export DISPLAY=:9")
	assert.Equal(t, ":9 xterm none", asCaller(t, second, ask, "DISPLAY=:1", "TERM=xterm"), "what was set by hand stays")

	var all sync.WaitGroup
	for i, k := range []*keeper.Kept{first, second} {
		all.Go(func() {
			for range 20 {
				assert.Equal(t, fmt.Sprint("tty", i), asCaller(t, k, "echo $SSH_TTY", fmt.Sprint("SSH_TTY=tty", i)))
			}
		})
	}
	all.Wait()

	says(t, first, "eval 'kill -9 $BASHPID' & wait; jobs") // A child: the shell goes on.
	_, err := first.Run(testenv.Context(t), "jobs; kill -9 $BASHPID")
	require.Error(t, err)
	assert.Equal(t, ":9 vt100 none", asCaller(t, second, ask, "DISPLAY=:1", "TERM=vt100"))
	require.NoError(t, first.Reset(testenv.Context(t)))
	assert.Equal(t, ":1 vt100 none", asCaller(t, second, ask, "DISPLAY=:1", "TERM=vt100"))
	require.NoError(t, first.Checkpoint(testenv.Context(t), "here"))
	assert.Equal(t, ":2 dumb none", asCaller(t, first, ask, "DISPLAY=:2", "TERM=dumb"))
	_, err = first.Rollback(testenv.Context(t), "here")
	require.NoError(t, err)
	assert.Equal(t, ":3 dumb none", asCaller(t, first, ask, "DISPLAY=:3", "TERM=dumb"))
}

// agentAt listens as an agent does, which says its name.
func agentAt(t *testing.T, dir, name string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	l, err := net.Listen("unix", path)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() }) // It was listening.
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, name) // Who hung up missed it.
			_ = conn.Close()                  // As above.
		}
	}()
	return path
}

func TestTheAgentIsThatOfTheLastCaller(t *testing.T) {
	r := registry(t, testenv.TempDir(t))
	dir := testenv.TempDir(t)
	one, two := agentAt(t, dir, "one"), agentAt(t, dir, "two")
	k := kept(t, r, "s", &keeper.Spec{Dir: "/tmp", Env: append(os.Environ(), "SSH_AUTH_SOCK="+one)})
	link := filepath.Join(r.StateDir(k.Name()), "agent")
	answers := func() string {
		conn, err := net.Dial("unix", link)
		require.NoError(t, err)
		defer conn.Close()
		b, err := io.ReadAll(conn)
		require.NoError(t, err)
		return string(b)
	}
	assert.Equal(t, link, says(t, k, "echo $SSH_AUTH_SOCK"), "also without a caller that brings one")
	assert.Equal(t, "one", answers())
	assert.Equal(t, link, asCaller(t, k, "echo $SSH_AUTH_SOCK", "SSH_AUTH_SOCK="+one))
	begun := filepath.Join(dir, "begun")
	says(t, k, "(echo >"+begun+"; while [ ! -e "+dir+"/go ]; do sleep 0.01; done; echo $SSH_AUTH_SOCK >"+dir+"/job) &")
	testenv.AwaitFile(t, begun)
	assert.Equal(t, link, asCaller(t, k, "echo $SSH_AUTH_SOCK", "SSH_AUTH_SOCK="+two))
	assert.Equal(t, "two", answers(), "of what runs on, too")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	assert.Equal(t, link, strings.TrimSpace(testenv.AwaitFile(t, filepath.Join(dir, "job"))))

	assert.Equal(t, "none", asCaller(t, k, "echo ${SSH_AUTH_SOCK-none}"))
	assert.Equal(t, "two", answers(), "it stays for those that have it")
	assert.Equal(t, "relative", asCaller(t, k, "echo $SSH_AUTH_SOCK", "SSH_AUTH_SOCK=relative"))
	require.NoError(t, os.Remove(link))
	assert.Equal(t, link, asCaller(t, k, "echo $SSH_AUTH_SOCK", "SSH_AUTH_SOCK="+one))
	assert.Equal(t, "one", answers())

	// Callers within sessions have the links of those.
	assert.Equal(t, link, asCaller(t, k, "echo $SSH_AUTH_SOCK", "SSH_AUTH_SOCK="+link))
	assert.Equal(t, "one", answers())
	other := kept(t, r, "other", &keeper.Spec{Dir: "/", Env: append(os.Environ(), "SSH_AUTH_SOCK="+link)})
	inner := says(t, other, "echo $SSH_AUTH_SOCK")
	assert.Equal(t, filepath.Join(r.StateDir(other.Name()), "agent"), inner)
	assert.Equal(t, link, asCaller(t, k, "echo $SSH_AUTH_SOCK", "SSH_AUTH_SOCK="+inner))
	assert.Equal(t, "one", answers(), "no link leads to itself")

	says(t, k, "SSH_AUTH_SOCK=/mine")
	assert.Equal(t, "/mine", asCaller(t, k, "echo $SSH_AUTH_SOCK", "SSH_AUTH_SOCK="+two))
	require.NoError(t, r.Close(testenv.Context(t), k))
	assert.NoFileExists(t, link)
}

func TestAnAgentWhoseLinkWouldBeTooLongIsNamedItself(t *testing.T) {
	testenv.NeedProc(t)
	dir := filepath.Join(testenv.TempDir(t), strings.Repeat("long/", 20))
	k := kept(t, registry(t, dir), "s", nil)
	assert.Equal(t, "/run/agent", asCaller(t, k, "echo $SSH_AUTH_SOCK", "SSH_AUTH_SOCK=/run/agent"))
}
