package main

import (
	"bytes"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/sandbox"
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
	t.Cleanup(func() { // Before that userdel does not remove the user.
		testenv.Await(t, "the end of what the user has started", func() bool {
			list, err := proc.List()
			return err == nil && !slices.ContainsFunc(list, func(st proc.Stat) bool {
				is, err := proc.EUID(st.PID)
				return err == nil && is == uid
			})
		})
	})
	return u
}

// runs is limpet on a terminal, as that user.
func (u aUser) runs(t *testing.T, args ...string) *seat {
	t.Helper()
	return programOnTerminal(t, u.home, "xterm", "setpriv", append(append(u.asItself(), u.limpet), args...)...)
}

// asItself are arguments of setpriv, behind which a command of that user begins.
func (u aUser) asItself() []string {
	return []string{"--reuid", u.name, "--regid", u.name, "--init-groups", "env", "-u", "DISPLAY", "XDG_RUNTIME_DIR=" + u.home, "XDG_STATE_HOME=" + u.home}
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
	t.Run("each command again", func(t *testing.T) {
		tm := u.runs(t, "run", "sudo -A id -un; sudo -A id -un", "sudo -A id -un; echo $?")
		for _, times := range []int{2, 1} {
			tm.sees(passwordPrompt)
			tm.types(u.password + "\r")
			for range times { // Within a command sudo remembers.
				tm.sees("root\r\n")
			}
		}
		tm.sees("0\r\n")
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

// aServer is an sshd of the test's own, which lasts as long as the test, and a client's configuration with it as "there".
type aServer struct {
	dir string
	ssh string // the beginning of a command: a client that reaches it
}

// startServer starts one that lets a user in by the key "user.pub", which is in the client's configuration, too. The options go before the others
// of both: the first counts.
func startServer(t *testing.T, login string, server, client []string) aServer {
	t.Helper()
	program := "/usr/sbin/sshd"
	if _, err := os.Stat(program); err != nil {
		t.Skip("no sshd")
	}
	if os.Geteuid() == 0 {
		require.NoError(t, os.MkdirAll("/run/sshd", 0o755)) // It is where it separates its privileges.
	}
	dir := testenv.TempDir(t)
	for name, passphrase := range map[string]string{"host": "", "user": secret} {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", filepath.Join(dir, name)).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	lines := func(name string, lines ...string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	}
	lines("sshd_config", append(server, "ListenAddress 127.0.0.1", "Port "+port, "HostKey "+filepath.Join(dir, "host"), "AuthorizedKeysFile "+filepath.Join(dir, "user.pub"),
		"PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin yes")...)
	lines("ssh_config", append(client, "Host there", "HostName 127.0.0.1", "HostKeyAlias there", "Port "+port, "User "+login, "IdentityFile "+filepath.Join(dir, "user"), "IdentitiesOnly yes",
		"IdentityAgent none", "UserKnownHostsFile "+filepath.Join(dir, "known"), "GlobalKnownHostsFile none", "StrictHostKeyChecking ask")...)
	sshd := exec.Command(program, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
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
	return aServer{dir, "ssh -F " + filepath.Join(dir, "ssh_config") + " there"}
}

func TestSSHAsksAtTheTerminal(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	me, err := user.Current()
	require.NoError(t, err)
	server := startServer(t, me.Username, nil, nil)
	dir, script := server.dir, server.ssh+" echo welcome"

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

// A server that wants the password of a user, and no key.
func TestSSHAsksForThePasswordOfAUser(t *testing.T) {
	testenv.NeedProc(t)
	u := addUser(t)
	server := startServer(t, u.name, []string{"PasswordAuthentication yes", "PubkeyAuthentication no"}, []string{"StrictHostKeyChecking accept-new"})
	words := "limpet: ssh asks for a password, with these words:\r\n  | " + u.name + "@there's password: \r\n"
	tm := onTerminal(t, server.dir, "xterm", "run", server.ssh+" id -un")
	tm.sees(words)
	tm.sees("It runs as ssh -F ")
	tm.sees(passwordPrompt)
	tm.types("wrong\r")
	tm.sees(words) // Mostly behind "Permission denied, please try again.", which comes another way.
	tm.sees("It asks again: the last answer was probably wrong.\r\n" + passwordPrompt)
	tm.types(u.password + "\r")
	tm.sees(u.name + "\r\n")
	tm.exits(0)
	assert.NotContains(t, tm.seen+tm.unread, u.password)

	tm = onTerminal(t, server.dir, "xterm", "run", server.ssh+" id -un")
	tm.sees(passwordPrompt)
	tm.types(ctrlC)
	tm.sees("Permission denied (password)")
	tm.exits(255)
	assert.Equal(t, 1, strings.Count(tm.seen+tm.unread, passwordPrompt), "to say no once is enough")
}

// Where limpet leads nobody to its own terminal, sudo and ssh fail, and do not wait for an answer. In a terminal of limpet's, ssh asks there.
func TestWhereNobodyIsAskedSudoAndSSHFail(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	u := addUser(t)
	server := startServer(t, u.name, []string{"PasswordAuthentication yes", "PubkeyAuthentication no"}, []string{"StrictHostKeyChecking accept-new"})
	conf, err := os.ReadFile(filepath.Join(server.dir, "ssh_config"))
	require.NoError(t, err)
	own := filepath.Join(u.home, "ssh_config") // That of the server is not for that user to read.
	require.NoError(t, os.WriteFile(own, bytes.ReplaceAll(conf, []byte(server.dir), []byte(u.home)), 0o644))
	ssh := "ssh -F " + own + " there"
	there := fmt.Sprintf("--on 'exec:env -i HOME=%s PATH=%s GORACE=atexit_sleep_ms=0 sh'", u.home, os.Getenv("PATH"))
	const sudo = "sudo -k -A id -un"
	const sandboxed = "sudo in a sandbox"
	for _, row := range []struct{ name, script, says string }{
		{"sudo in a job", "id=$(limpet jobs start '" + sudo + "'); limpet jobs wait $id; limpet jobs log $id", "sudo: no askpass program specified"},
		{"sudo in a job of a session", "id=$(limpet jobs -s s start '" + sudo + "'); limpet jobs -s s wait $id; limpet jobs -s s log $id; limpet session close s", "sudo: no askpass program specified"},
		{"sudo in a terminal", "id=$(limpet term start --line '" + sudo + "'); limpet term wait $id; limpet term log $id", "sudo: no askpass program specified"},
		{"ssh in a terminal asks there", "id=$(limpet term start --line '" + ssh + " id'); limpet term wait --text \"there's password:\" $id; limpet term screen $id; limpet term stop $id", u.name + "@there's password:"},
		{"sudo on another machine", "limpet run " + there + " '" + sudo + "'; limpet hosts close --all", "sudo: no askpass program specified"},
		{sandboxed, "mkdir w; cd w; limpet run --sandbox workspace-write '" + sudo + "'", "sudo: "},
		{"ssh in a job", "id=$(limpet jobs start '" + ssh + " id'); limpet jobs wait $id; limpet jobs log $id", "Permission denied (password)"},
		{"ssh on another machine", "limpet run " + there + " '" + ssh + " id'; limpet hosts close --all", "Permission denied (password)"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.name == sandboxed {
				if _, err := sandbox.Probe(testenv.Context(t)); err != nil {
					t.Skipf("no sandbox is to be had here: %q", err)
				}
			}
			as := u.asItself()
			tm := programOnTerminal(t, u.home, "xterm", "setpriv", append(as, "PATH="+filepath.Dir(u.limpet)+":"+os.Getenv("PATH"), "sh", "-c", row.script+"; echo over")...)
			tm.sees(row.says)
			tm.sees("over\r\n")
			tm.exits(0)
			assert.NotContains(t, tm.seen+tm.unread, "asks for a password")
		})
	}
}

func TestGitAsksAtTheTerminal(t *testing.T) {
	testenv.Slow(t)
	testenv.NeedProc(t)
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	})
	home := testenv.TempDir(t)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	var script string
	for scheme, server := range map[string]*httptest.Server{"http": httptest.NewServer(handler), "https": httptest.NewTLSServer(handler)} {
		defer server.Close()
		if cert := server.Certificate(); cert != nil {
			file := filepath.Join(home, "cert.pem")
			require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600))
			t.Setenv("GIT_SSL_CAINFO", file)
		}
		script = fmt.Sprintf("git ls-remote %s/x.git", server.URL)
		tm := onTerminal(t, home, "xterm", "run", script)
		// Linux keeps 15 bytes of a name, and so no s.
		tm.sees("limpet: git-remote-http asks, with these words:\r\n  | Username for '" + server.URL + "': \r\n")
		tm.sees("It runs as ")
		tm.sees("git-remote-" + scheme + " " + server.URL)
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
	}

	// A program in git's configuration is the user's own.
	require.NoError(t, os.WriteFile(filepath.Join(home, "own"), []byte("#!/bin/sh\ncase $1 in Username*) echo alice ;; *) echo "+secret+" ;; esac\n"), 0o700))
	tm := onTerminal(t, home, "xterm", "run", "git config --global core.askPass "+filepath.Join(home, "own"), script)
	tm.exits(0)
	assert.NotContains(t, tm.seen+tm.unread, "limpet:")
}
