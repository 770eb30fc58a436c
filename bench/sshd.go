package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sshServer is an sshd on the loopback, and a script that is its client, with a connection that is shared.
type sshServer struct {
	dir, ssh string
	server   *exec.Cmd
	master   *exec.Cmd
	link     *link // between the client and the sshd; nil: none
}

// startSSHD starts one to which the way there and back takes roundTrip. Without an sshd it is nil, which is noted.
func (b *bench) startSSHD(roundTrip time.Duration) (*sshServer, error) {
	dir, err := os.MkdirTemp(b.files, "remote-")
	if err != nil {
		return nil, err
	}
	s := &sshServer{dir: dir, ssh: filepath.Join(dir, "ssh")}
	if err := b.startBoth(s, roundTrip); err != nil {
		s.close()
		b.report.note("ssh was not measured: %v", err)
		return nil, nil
	}
	return s, nil
}

// target is where limpet reaches it.
func (s *sshServer) target() string { return "exec:" + s.ssh + " there exec sh" }

func (b *bench) startBoth(s *sshServer, roundTrip time.Duration) error {
	const sshd = "/usr/sbin/sshd"
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return err
	}
	if _, err := os.Stat(sshd); err != nil {
		return err
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	_ = l.Close() // The port is free then.
	if err != nil {
		return err
	}
	near := port
	if roundTrip > 0 {
		if s.link, err = newLink(port, roundTrip/2); err != nil {
			return err
		}
		near = s.link.port()
	}
	in := func(name string) string { return filepath.Join(s.dir, name) }
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(key)).CombinedOutput(); err != nil {
			return fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
	}
	for name, text := range map[string]string{
		"server": strings.Join([]string{
			"ListenAddress 127.0.0.1", "Port " + port, "HostKey " + in("host"), "AuthorizedKeysFile " + in("user.pub"), "PidFile none", "StrictModes no", "UsePAM no", "PermitRootLogin yes",
			// As deep in shells bash reads no startup files, whose time is the user's.
			"SetEnv SHLVL=2 XDG_STATE_HOME=" + in("there") + " XDG_CACHE_HOME=" + filepath.Join(b.files, "cache"), "",
		}, "\n"),
		"client": strings.Join([]string{
			"Host there", "HostName 127.0.0.1", "Port " + near, "UserKnownHostsFile /dev/null", "StrictHostKeyChecking no", "LogLevel ERROR", "IdentityFile " + in("user"), "IdentitiesOnly yes", "ControlPath " + in("mux"), "",
		}, "\n"),
		"ssh": "#!/bin/sh\nexec " + ssh + " -F " + in("client") + ` "$@"` + "\n",
	} {
		if err := os.WriteFile(in(name), []byte(text), 0o700); err != nil {
			return err
		}
	}
	s.server = exec.Command(sshd, "-D", "-e", "-f", in("server"))
	if err := s.server.Start(); err != nil {
		return err
	}
	s.master = exec.Command(s.ssh, "-M", "-N", "there")
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close() // It was to see whether it is there.
			break
		}
		if time.Since(began) > 10*time.Second {
			return errors.New("sshd does not answer")
		}
	}
	if err := s.master.Start(); err != nil {
		return err
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(in("mux")); err == nil {
			return nil
		}
		if time.Since(began) > 10*time.Second {
			return errors.New("ssh shares no connection")
		}
	}
}

// close ends them.
func (s *sshServer) close() {
	for _, cmd := range []*exec.Cmd{s.master, s.server} {
		if cmd != nil && cmd.Process != nil {
			_ = cmd.Process.Kill() // It may have ended. Ssh loses a SIGTERM that comes while it closes a channel.
			_ = cmd.Wait()         // As above.
		}
	}
	if s.link != nil {
		s.link.close()
	}
}
