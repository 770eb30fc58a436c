package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/remote"
)

// remoteTrue measures a command on another machine, which is this one, by an sshd on the loopback: in a session that is kept over there,
// and by a fresh ssh over a connection that is shared.
func (b *bench) remoteTrue() error {
	dir, err := os.MkdirTemp(b.files, "remote-")
	if err != nil {
		return err
	}
	d, err := b.startSSHD(dir)
	if err != nil {
		b.report.Notes = append(b.report.Notes, "ssh was not measured: "+err.Error())
		return nil
	}
	defer d.close()
	program, err := b.limpet()
	if err != nil {
		return err
	}
	target := "exec:" + d.ssh + " there exec sh"
	env := append(b.env[:len(b.env):len(b.env)], "XDG_STATE_HOME="+filepath.Join(dir, "near"))
	oneshot := &programSide{as: sharedSSH, argv: []string{d.ssh, "there"}, env: env}
	all, err := b.contestOf("`true` over ssh", "true", b.usual(60), &remoteSide{target: target, executable: program}, &byteSide{d: d}, oneshot)
	if err != nil {
		return err
	}
	b.report.compare(all, within(byteName, 1.5), atLeastFaster(sharedSSH, 20))
	end := []string{"sh", "-c", program + ` session close --on "$1" bench; ` + program + " hosts close --all", "sh", target}
	all, err = b.contestOf("`true` by a program of its own, over ssh", "true", b.usual(20),
		&programSide{as: limpetName, argv: []string{program, "run", "-s", "bench", "--on", target}, env: env, end: end}, oneshot)
	if err != nil {
		return err
	}
	b.report.compare(all)
	// Without what takes long by itself, and what a login of ssh has not in its PATH.
	stages, _ := without(programmersHour, func(tool string) bool { return tool == "go" || absent(tool) })
	return b.hourOf(stages, &visitor{side: &remoteSide{target: target, executable: program}}, &visitor{side: oneshot, forgets: true}, ", over ssh")
}

// The names of the sides.
const (
	sharedSSH = "ssh, a shared connection"
	byteName  = "a byte there and back"
)

// sshServer is an sshd on the loopback, and a script that is its client, with a connection that is shared.
type sshServer struct {
	ssh    string
	server *exec.Cmd
	master *exec.Cmd
}

func (b *bench) startSSHD(dir string) (*sshServer, error) {
	const sshd = "/usr/sbin/sshd"
	ssh, err := exec.LookPath("ssh")
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(sshd); err != nil {
		return nil, err
	}
	if os.Getuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	_ = l.Close() // The port is free then.
	if err != nil {
		return nil, err
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, key := range []string{"host", "user"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", in(key)).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
	}
	s := &sshServer{ssh: in("ssh")}
	for name, text := range map[string]string{
		"server": strings.Join([]string{
			"ListenAddress 127.0.0.1", "Port " + port, "HostKey " + in("host"), "AuthorizedKeysFile " + in("user.pub"), "PidFile none", "StrictModes no", "UsePAM no", "PermitRootLogin yes",
			// As deep in shells bash reads no startup files, whose time is the user's.
			"SetEnv SHLVL=2 XDG_STATE_HOME=" + in("there") + " XDG_CACHE_HOME=" + in("cache"), "",
		}, "\n"),
		"client": strings.Join([]string{
			"Host there", "HostName 127.0.0.1", "Port " + port, "UserKnownHostsFile /dev/null", "StrictHostKeyChecking no", "LogLevel ERROR", "IdentityFile " + in("user"), "IdentitiesOnly yes", "ControlPath " + in("mux"), "",
		}, "\n"),
		"ssh": "#!/bin/sh\nexec " + ssh + " -F " + in("client") + ` "$@"` + "\n",
	} {
		if err := os.WriteFile(in(name), []byte(text), 0o700); err != nil {
			return nil, err
		}
	}
	s.server = exec.Command(sshd, "-D", "-e", "-f", in("server"))
	if err := s.server.Start(); err != nil {
		return nil, err
	}
	s.master = exec.Command(s.ssh, "-M", "-N", "there")
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close() // It was to see whether it is there.
			break
		}
		if time.Since(began) > 10*time.Second {
			s.close()
			return nil, errors.New("sshd does not answer")
		}
	}
	if err := s.master.Start(); err != nil {
		s.master = nil
		s.close()
		return nil, err
	}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Lstat(in("mux")); err == nil {
			return s, nil
		}
		if time.Since(began) > 10*time.Second {
			s.close()
			return nil, errors.New("ssh shares no connection")
		}
	}
}

// close ends both.
func (s *sshServer) close() {
	for _, cmd := range []*exec.Cmd{s.master, s.server} {
		if cmd != nil && cmd.Process != nil {
			_ = cmd.Process.Kill() // It may have ended. Ssh loses a SIGTERM that comes while it closes a channel.
			_ = cmd.Wait()         // As above.
		}
	}
}

// remoteSide is a session on another machine, by the library.
type remoteSide struct {
	target, executable string
	h                  *remote.Host
	s                  *remote.Session
}

func (s *remoteSide) name() string { return limpetName }

func (s *remoteSide) open(b *bench, _ string) (err error) {
	if s.h, err = (&remote.Dialer{Executable: s.executable}).Dial(b.ctx, s.target); err != nil {
		return err
	}
	s.s, err = s.h.Open(b.ctx, "bench", nil)
	return err
}

func (s *remoteSide) run(ctx context.Context, script string) (output, error) {
	return outputOf(s.s.Run(ctx, script))
}

func (s *remoteSide) close() error {
	if s.s == nil {
		return s.h.Close()
	}
	return errors.Join(s.s.Close(), s.h.Close())
}

// byteSide sends a byte by ssh to a cat, and waits until it is back: what the way alone takes.
type byteSide struct {
	d   *sshServer
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

func (s *byteSide) name() string { return byteName }

func (s *byteSide) open(*bench, string) (err error) {
	s.cmd = exec.Command(s.d.ssh, "there", "exec cat")
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	if s.out, err = s.cmd.StdoutPipe(); err != nil {
		return err
	}
	return s.cmd.Start()
}

func (s *byteSide) run(context.Context, string) (output, error) {
	if _, err := s.in.Write([]byte{'x'}); err != nil {
		return output{}, err
	}
	_, err := io.ReadFull(s.out, make([]byte, 1))
	return output{}, err
}

func (s *byteSide) close() error {
	_ = s.in.Close() // It ends with that.
	return s.cmd.Wait()
}
