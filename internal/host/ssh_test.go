package host_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/session/sessiontest"
)

// sshd is a server on the loopback that lets this user in by a key, and the configuration of a client.
type sshd struct {
	dir   string
	port  string
	state string // of the sessions there
}

// startSSHD starts one, with more lines for its configuration. The client is ssh with a configuration of its own, by a script that
// is first in the PATH.
func startSSHD(t *testing.T, more ...string) *sshd {
	t.Helper()
	path, err := exec.LookPath("sshd")
	if err != nil {
		path = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(path); err != nil {
		t.Skip("no sshd")
	}
	ssh, err := exec.LookPath("ssh")
	require.NoError(t, err)
	me, err := user.Current()
	require.NoError(t, err)
	if me.Uid == "0" {
		require.NoError(t, os.MkdirAll("/run/sshd", 0o755)) // It is where it separates its privileges.
	}
	s := &sshd{dir: testenv.TempDir(t), port: freePort(t), state: testenv.TempDir(t)}
	for _, key := range []string{"host", "other-host", "user", "other"} {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", s.path(key)).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	s.write(t, "sshd_config", append([]string{
		"ListenAddress 127.0.0.1", "Port " + s.port, "HostKey " + s.path("host"), "AuthorizedKeysFile " + s.path("user.pub"), "PidFile none",
		"StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes", "MaxStartups 100",
		// Of a user who is deep in shells bash reads no startup files.
		"SetEnv SHLVL=2 XDG_STATE_HOME=" + s.state + " XDG_CACHE_HOME=" + cache() + " GORACE=" + race,
	}, more...)...)
	cmd := exec.Command(path, "-D", "-e", "-f", s.path("sshd_config"))
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // It runs until then.
		_ = cmd.Wait()                          // As said.
		if t.Failed() {
			t.Log(said.String())
		}
	})
	endSessions(t, filepath.Join(s.state, "limpet", "keep"))
	testenv.Await(t, "sshd", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+s.port)
		if err == nil {
			_ = c.Close() // It was to see whether it is there.
		}
		return err == nil
	})
	s.known(t, "host")
	s.client(t)
	bin := testenv.TempDir(t)
	require.NoError(t, os.WriteFile(filepath.Join(bin, "ssh"), []byte("#!/bin/sh\nexec "+ssh+" -F "+s.path("config")+` "$@"`+"\n"), 0o755))
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return s
}

func (s *sshd) path(name string) string { return filepath.Join(s.dir, name) }

func (s *sshd) write(t *testing.T, name string, lines ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(s.path(name), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// known has the client know the server by a key.
func (s *sshd) known(t *testing.T, key string) {
	t.Helper()
	b, err := os.ReadFile(s.path(key + ".pub"))
	require.NoError(t, err)
	s.write(t, "known_hosts", fmt.Sprintf("[127.0.0.1]:%s %s", s.port, b))
}

// client writes the configuration of the client, which knows the server as there.
func (s *sshd) client(t *testing.T, more ...string) {
	t.Helper()
	s.clientOf(t, s.port, more...)
}

// clientOf is client of a port that leads there.
func (s *sshd) clientOf(t *testing.T, port string, more ...string) {
	t.Helper()
	s.write(t, "config", append(append([]string{"Host there", "  HostName 127.0.0.1", "  Port " + port}, more...),
		"Host *", "  UserKnownHostsFile "+s.path("known_hosts"), "  GlobalKnownHostsFile /dev/null", "  IdentityFile "+s.path("user"), "  IdentitiesOnly yes")...)
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close() // The port is free then.
	_, port, err := net.SplitHostPort(l.Addr().String())
	require.NoError(t, err)
	return port
}

func TestOverSSH(t *testing.T) {
	testenv.Slow(t)
	s := startSSHD(t, "Banner "+"/etc/passwd")
	ctx := testenv.Context(t)
	for _, target := range []string{"ssh://there", "ssh://127.0.0.1:" + s.port, "ssh://" + userName(t) + "@there/"} {
		h := dial(t, target, nil)
		k, err := h.Session(ctx, "s", &keeper.Spec{Dir: "/tmp"})
		require.NoError(t, err, target)
		res, err := k.Run(ctx, "echo $((x += 1)) $PWD ${SSH_CONNECTION%% *}")
		require.NoError(t, err, target)
		assert.Regexp(t, `^[123] /tmp 127.0.0.1\n$`, res.Stdout.String(), target)
		require.NoError(t, h.Disconnect(), target)
	}
	h := dial(t, "ssh://there", nil)
	k, err := h.Session(ctx, "s", nil)
	require.NoError(t, err)
	res, err := k.Run(ctx, "echo $x")
	require.NoError(t, err)
	assert.Equal(t, "3\n", res.Stdout.String())
}

func userName(t *testing.T) string {
	t.Helper()
	me, err := user.Current()
	require.NoError(t, err)
	return me.Username
}

// What people have in their configuration for themselves does not spoil the pipe.
func TestTheUsersSSHConfigurationCounts(t *testing.T) {
	testenv.Slow(t)
	s := startSSHD(t)
	ctx := testenv.Context(t)
	mux := filepath.Join(testenv.TempDir(t), "mux")
	s.client(t, "  RequestTTY force", "  RemoteCommand echo hello", "  LocalForward "+freePort(t)+" 127.0.0.1:1", "  PermitLocalCommand yes", "  LocalCommand echo local",
		"  ControlMaster auto", "  ControlPath "+mux, "Host through", "  HostName 127.0.0.1", "  Port "+s.port, "  ProxyJump there")
	for _, target := range []string{"ssh://there", "ssh://through"} {
		h := dial(t, target, nil)
		_, err := h.List(ctx, false)
		require.NoError(t, err, target)
		if target == "ssh://there" { // Else it is the one by which ssh jumps.
			assert.NoFileExists(t, mux, "it is no master")
		}
		require.NoError(t, h.Disconnect(), target)
	}
	isThere := func() bool {
		_, err := os.Lstat(mux)
		return err == nil
	}
	testenv.Await(t, "the jump to end", func() bool { return !isThere() })

	// A connection that is shared is used, and one that does not answer is gone around.
	master := exec.Command("ssh", "-N", "-o", "RequestTTY=no", "-o", "RemoteCommand=none", "-o", "ClearAllForwardings=yes", "there")
	require.NoError(t, master.Start())
	defer func() {
		_ = master.Process.Kill() // It runs until then.
		_ = master.Wait()         // As said.
	}()
	testenv.Await(t, "the shared connection", isThere)
	h := dial(t, "ssh://there", nil)
	require.NoError(t, h.Disconnect())
	require.NoError(t, master.Process.Signal(syscall.SIGSTOP))
	h = dial(t, "ssh://there", &host.Options{Patience: 2 * time.Second})
	_, err := h.List(ctx, false)
	require.NoError(t, err)
}

// The key is nowhere but in the agent, which is asked here alone.
func TestTheUsersSSHAgentCounts(t *testing.T) {
	testenv.Slow(t)
	s := startSSHD(t)
	socket := filepath.Join(testenv.TempDir(t), "agent")
	agent := exec.Command("ssh-agent", "-D", "-a", socket)
	require.NoError(t, agent.Start())
	t.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM) // It runs until then.
		_ = agent.Wait()                          // As said.
	})
	t.Setenv("SSH_AUTH_SOCK", socket)
	testenv.Await(t, "the agent", func() bool {
		_, err := os.Stat(socket)
		return err == nil
	})
	out, err := exec.Command("ssh-add", "-q", s.path("user")).CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, os.Remove(s.path("user")))
	h := dial(t, "ssh://there", nil)
	k, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
	require.NoError(t, err)
	res, err := k.Run(testenv.Context(t), "echo ${SSH_AUTH_SOCK-none}")
	require.NoError(t, err)
	assert.Equal(t, "none\n", res.Stdout.String(), "it is not forwarded")
	require.NoError(t, h.Disconnect())
	out, err = exec.Command("ssh-add", "-q", "-D").CombinedOutput()
	require.NoError(t, err, string(out))
	assert.ErrorContains(t, failing(t, "ssh://there", nil), "Permission denied (publickey)", "the key is nowhere else")
}

func TestWhySSHDoesNotReachAMachine(t *testing.T) {
	testenv.Slow(t)
	asks := freePort(t)
	s := startSSHD(t, "Port "+asks, "Match LocalPort "+asks, "  PubkeyAuthentication no", "  PasswordAuthentication yes")
	key := "  HostKeyAlias [127.0.0.1]:" + s.port
	s.client(t, "Host refused", "  HostName 127.0.0.1", "  Port "+freePort(t),
		"Host asks", "  HostName 127.0.0.1", "  Port "+asks, key)
	says := func(target string, parts ...string) {
		t.Helper()
		err := failing(t, target, nil)
		for _, part := range parts {
			assert.ErrorContains(t, err, part)
		}
	}
	says("ssh://nowhere.invalid", "ssh ended with exit code 255; it said: ", "Could not resolve hostname", "is the name right?")
	says("ssh://refused", "Connection refused; does sshd run there, on that port?")
	require.NoError(t, os.Rename(s.path("user"), s.path("away")))
	says("ssh://there", "Permission denied (publickey)", "ssh-add(1)")
	require.NoError(t, os.Rename(s.path("away"), s.path("user")))
	const nobody = "; ssh has no key that is accepted there without a question, and nobody is there to be asked: see ssh-add(1), and try ssh HOST true"
	says("ssh://asks", "Permission denied (password)."+nobody)
	passphrase := func(before, after string) {
		out, err := exec.Command("ssh-keygen", "-q", "-p", "-P", before, "-N", after, "-f", s.path("user")).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	passphrase("", "a secret")
	says("ssh://there", "Permission denied (publickey)."+nobody)
	passphrase("a secret", "")
	s.write(t, "known_hosts")
	says("ssh://there", "Host key verification failed", "connect once by ssh")
	s.known(t, "other-host")
	says("ssh://there", "has changed", "ssh-keygen -R HOST forgets its old key")
}

func TestALoginThatEndsAtOnceIsAnError(t *testing.T) {
	testenv.Slow(t)
	startSSHD(t, "ForceCommand echo this account is closed; exit 1")
	assert.ErrorContains(t, failing(t, "ssh://there", nil), "ssh ended with exit code 1; it said: this account is closed; the account over there, a startup file or a ForceCommand ends the login: try ssh HOST exec sh")
}

func TestALoginThatTalksIsListenedTo(t *testing.T) {
	testenv.Slow(t)
	startSSHD(t, `ForceCommand echo welcome; echo " to the machine" >&2; eval "$SSH_ORIGINAL_COMMAND"`)
	h := dial(t, "ssh://there", nil)
	_, err := h.List(testenv.Context(t), false)
	require.NoError(t, err)
}

func TestAKilledSSHLosesNothing(t *testing.T) {
	testenv.Slow(t)
	startSSHD(t)
	ctx := testenv.Context(t)
	h := dial(t, "ssh://there", &host.Options{Reconnect: -1})
	k, err := h.Session(ctx, "s", &keeper.Spec{})
	require.NoError(t, err)
	_, err = k.Run(ctx, "x=1")
	require.NoError(t, err)
	require.NoError(t, exec.Command("pkill", "-KILL", "-P", fmt.Sprint(os.Getpid()), "-x", "ssh").Run())
	_, err = k.Run(ctx, "x=2")
	require.ErrorIs(t, err, host.ErrLost)
	require.ErrorContains(t, err, "ssh was ended by signal 9")
	h = dial(t, "ssh://there", nil)
	k, err = h.Session(ctx, "s", nil)
	require.NoError(t, err)
	require.NoError(t, exec.Command("pkill", "-KILL", "-P", fmt.Sprint(os.Getpid()), "-x", "ssh").Run())
	res, err := k.Run(ctx, "echo $x")
	require.NoError(t, err, "it is dialled again")
	assert.Equal(t, "1\n", res.Stdout.String())
}

func TestSessionsOverSSHKeepThePromises(t *testing.T) {
	testenv.OnlyAll(t)
	s := startSSHD(t)
	sessiontest.Run(t, func(t *testing.T) session.Handle {
		state := testenv.TempDir(t)
		endSessions(t, filepath.Join(state, "limpet", "keep"))
		h := dial(t, "exec:ssh -T -p "+s.port+" 127.0.0.1 XDG_STATE_HOME="+state+" exec sh", nil)
		k, err := h.Session(testenv.Context(t), "s", &keeper.Spec{Dir: testenv.TempDir(t)})
		require.NoError(t, err)
		return k
	})
}
