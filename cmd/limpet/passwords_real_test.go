package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// aUser is a user of this machine, with a home, who may run id by sudo, and nothing else.
type aUser struct {
	name, home, password string
	limpet               string // the program, where that user can execute it
}

func addUser(t *testing.T) aUser {
	t.Helper()
	for _, program := range []string{"sudo", "useradd", "userdel", "chpasswd", "setpriv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("no sudo")
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can make a user with a password")
	}
	id := environ.NewID()
	u := aUser{name: "limpet-" + id[:8], password: id}
	var err error
	u.home, err = os.MkdirTemp("/tmp", "limpet-user-") // That of the test is root's alone.
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(u.home)) })
	do := func(stdin string, argv ...string) {
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", argv, out)
	}
	do("", "useradd", "--no-create-home", "--home-dir", u.home, "--shell", "/bin/bash", u.name)
	t.Cleanup(func() { do("", "userdel", u.name) })
	do(u.name+":"+u.password+"\n", "chpasswd")
	sudoers := filepath.Join("/etc/sudoers.d", u.name)
	require.NoError(t, os.WriteFile(sudoers, []byte("Defaults:"+u.name+" !fqdn\n"+u.name+" ALL=(root) /usr/bin/id\n"), 0o440))
	t.Cleanup(func() { require.NoError(t, os.Remove(sudoers)) })
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(u.home, "bin"), 0o755))
	u.limpet = filepath.Join(u.home, "bin", "limpet")
	require.NoError(t, os.WriteFile(u.limpet, self, 0o755))
	require.NoError(t, os.Chmod(u.home, 0o755))
	is, err := user.Lookup(u.name)
	require.NoError(t, err)
	uid, err := strconv.Atoi(is.Uid)
	require.NoError(t, err)
	require.NoError(t, os.Chown(u.home, uid, -1))
	return u
}

// runs is limpet on a terminal, as that user.
func (u aUser) runs(t *testing.T, args ...string) *seat {
	t.Helper()
	as := []string{"--reuid", u.name, "--regid", u.name, "--init-groups", "env", "-u", "DISPLAY", "XDG_RUNTIME_DIR=" + u.home, "XDG_STATE_HOME=" + u.home, u.limpet}
	return programOnTerminal(t, u.home, "xterm", "setpriv", append(as, args...)...)
}

func TestSudoAsksAtTheTerminal(t *testing.T) {
	testenv.Slow(t) // Sudo waits after a wrong password.
	u := addUser(t)
	t.Run("the second answer is right", func(t *testing.T) {
		tm := u.runs(t, "run", "sudo -k -A id -un")
		words := "limpet: sudo asks for a password, with these words:\r\n  | [sudo] password for " + u.name + ": \r\n"
		tm.sees(words)
		tm.sees("It runs as sudo -k -A id -un [")
		tm.sees("] <- bash [")
		assert.NotContains(t, tm.seen+tm.unread, "Beware")
		tm.sees(passwordPrompt)
		tm.types("wrong\r")
		tm.sees(words) // Mostly behind "Sorry, try again.", which comes another way.
		tm.sees("It asks again: the last answer was probably wrong.\r\n" + passwordPrompt)
		tm.types(u.password + "\r")
		tm.sees("root\r\n")
		tm.exits(0)
		assert.NotContains(t, tm.seen+tm.unread, u.password)
	})
	t.Run("no", func(t *testing.T) {
		tm := u.runs(t, "run", "sudo -k -A id -un")
		tm.sees(passwordPrompt)
		tm.types(ctrlC)
		tm.sees("no\r\nlimpet: no password: the answer was no\r\n")
		tm.sees("sudo: a password is required\r\n")
		tm.exits(1)
	})
	t.Run("without -A", func(t *testing.T) {
		tm := u.runs(t, "run", "sudo -k id -un")
		tm.sees("sudo: a terminal is required to read the password")
		tm.exits(1)
	})
	t.Run("without -A, with an empty DISPLAY", func(t *testing.T) {
		tm := u.runs(t, "run", "--env", "DISPLAY=", "sh -c 'sudo -k id -un; true'")
		tm.sees("It runs as sudo -k id -un [")
		tm.sees("] <- sh -c sudo -k id -un; true [")
		tm.sees(passwordPrompt)
		tm.types(u.password + "\r")
		tm.sees("root\r\n")
		tm.exits(0)
	})
	t.Run("in a session that stays", func(t *testing.T) {
		tm := u.runs(t, "run", "-s", "sudo", "sudo -k -A id -un")
		tm.sees("It runs as sudo -k -A id -un [")
		tm.sees(passwordPrompt)
		tm.types(u.password + "\r")
		tm.sees("root\r\n")
		tm.exits(0)
		tm = u.runs(t, "session", "close", "sudo")
		tm.exits(0)
	})
	t.Run("in the repl", func(t *testing.T) {
		tm := u.runs(t, "repl")
		tm.sees(" $ ")
		tm.types("sudo -k -A id -un\n")
		tm.sees(passwordPrompt)
		tm.types(u.password + "\r")
		tm.sees("root\r\n")
		tm.sees(" $ ")
		tm.types(ctrlD)
		tm.exits(0)
		assert.NotContains(t, tm.seen+tm.unread, u.password)
	})
}

func TestSSHAsksAtTheTerminal(t *testing.T) {
	testenv.NeedProc(t)
	server := "/usr/sbin/sshd"
	if _, err := os.Stat(server); err != nil {
		t.Skip("no sshd")
	}
	me, err := user.Current()
	require.NoError(t, err)
	if me.Uid == "0" {
		require.NoError(t, os.MkdirAll("/run/sshd", 0o755)) // It is where it separates its privileges.
	}
	dir := testenv.TempDir(t)
	key := func(name, passphrase string) {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", filepath.Join(dir, name)).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	key("host", "")
	key("user", secret)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	lines := func(name string, lines ...string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	lines("sshd_config", "ListenAddress 127.0.0.1", "Port "+port, "HostKey "+filepath.Join(dir, "host"), "AuthorizedKeysFile "+filepath.Join(dir, "user.pub"),
		"PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes")
	lines("ssh_config", "Host there", "HostName 127.0.0.1", "HostKeyAlias there", "Port "+port, "User "+me.Username, "IdentityFile "+filepath.Join(dir, "user"), "IdentitiesOnly yes",
		"IdentityAgent none", "UserKnownHostsFile "+filepath.Join(dir, "known"), "GlobalKnownHostsFile none", "StrictHostKeyChecking ask")
	sshd := exec.Command(server, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	require.NoError(t, sshd.Start())
	t.Cleanup(func() {
		_ = sshd.Process.Kill() // It lives until then.
		_ = sshd.Wait()         // It was killed.
	})
	testenv.Await(t, "sshd", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = conn.Close() // It was a look.
		}
		return err == nil
	})
	script := "ssh -F " + filepath.Join(dir, "ssh_config") + " there echo welcome"

	// A key of a host that nobody has said yes to is no password.
	tm := onTerminal(t, dir, "xterm", "run", script)
	tm.sees("limpet: ssh asks for a yes, with these words:\r\n")
	tm.sees("  | Are you sure you want to continue connecting (yes/no/[fingerprint])?")
	tm.sees("It runs as ssh -F ")
	tm.sees("y: yes   any other key: no  ")
	tm.types("n")
	tm.sees("Host key verification failed.")
	tm.exits(255)

	tm = onTerminal(t, dir, "xterm", "run", script)
	tm.sees("y: yes   any other key: no  ")
	tm.types("y")
	tm.sees("limpet: ssh asks for a password, with these words:\r\n  | Enter passphrase for key '")
	tm.sees(passwordPrompt)
	tm.types("wrong\r")
	tm.sees("It asks again: the last answer was probably wrong.\r\n" + passwordPrompt)
	tm.types(secret + "\r")
	tm.sees("welcome\r\n")
	tm.exits(0)
	tm.shownNowhere()

	// To say no once is enough.
	tm = onTerminal(t, dir, "xterm", "run", script)
	tm.sees(passwordPrompt)
	tm.types(ctrlC)
	tm.sees("Permission denied (publickey)")
	tm.exits(255)
	assert.Equal(t, 1, strings.Count(tm.seen+tm.unread, passwordPrompt))
}

func TestGitAsksAtTheTerminal(t *testing.T) {
	testenv.NeedProc(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name != "alice" || password != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			_, _ = io.WriteString(w, strings.Repeat("1", 40)+"\trefs/heads/main\n") // As of a server that knows nothing of git.
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	home := testenv.TempDir(t)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	script := fmt.Sprintf("git ls-remote %s/x.git", server.URL)
	tm := onTerminal(t, home, "xterm", "run", script)
	tm.sees("limpet: git-remote-http asks, with these words:\r\n  | Username for '" + server.URL + "': \r\n")
	tm.sees("It runs as ")
	tm.sees(" <- git ls-remote " + server.URL)
	tm.sees("Answer (Enter alone or Ctrl-C: no): ")
	tm.types("alicf\x7fe\r")
	tm.sees("alicf\b \be\r\n")
	tm.sees("limpet: git-remote-http asks for a password, with these words:\r\n  | Password for '")
	tm.sees(passwordPrompt)
	tm.types(secret + "\r")
	tm.sees("refs/heads/main\r\n")
	tm.exits(0)
	tm.shownNowhere()

	// A program in git's configuration is the user's own.
	require.NoError(t, os.WriteFile(filepath.Join(home, "own"), []byte("#!/bin/sh\ncase $1 in Username*) echo alice ;; *) echo "+secret+" ;; esac\n"), 0o700))
	tm = onTerminal(t, home, "xterm", "run", "git config --global core.askPass "+filepath.Join(home, "own"), script)
	tm.exits(0)
	assert.NotContains(t, tm.seen+tm.unread, "limpet:")
}
