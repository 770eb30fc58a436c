package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/limpet-sh/limpet/remote"
)

// remoteTrue measures a command on another machine, which is this one, by an sshd on the loopback: in a session that is kept over there,
// and by a fresh ssh over a connection that is shared.
func (b *bench) remoteTrue() error { return b.remoteTrueAfter(0, 60, " over ssh") }

// roundTrip is that of a link which takes time.
const roundTrip = 50 * time.Millisecond

// remoteLink measures the same on a link of its own.
func (b *bench) remoteLink() error {
	way := b.linkTime()
	return b.remoteTrueAfter(way, 40, fmt.Sprintf(" over ssh, %v there and back", way))
}

// linkTime is the round trip of a link, which is short in a smoke: it takes time, and nothing else.
func (b *bench) linkTime() time.Duration { return roundTrip / time.Duration(b.share) }

func (b *bench) remoteTrueAfter(way time.Duration, rounds int, where string) error {
	d, err := b.startSSHD(way)
	if d == nil {
		return err
	}
	defer d.close()
	program, err := b.limpet()
	if err != nil {
		return err
	}
	env := append(b.env[:len(b.env):len(b.env)], "XDG_STATE_HOME="+filepath.Join(d.dir, "near"))
	oneshot := &programSide{as: sharedSSH, argv: []string{d.ssh, "there"}, env: env}
	fresh := &programSide{as: freshSSH, argv: []string{d.ssh, "-S", "none", "there"}, env: env}
	limpet := &remoteSide{target: d.target(), executable: program}
	all, err := b.contestOf("`true`"+where, "true", b.usual(rounds), limpet, &byteSide{d: d}, oneshot, fresh)
	if err != nil {
		return err
	}
	b.report.compare(all, within(byteName, 1.5), atLeastFaster(sharedSSH, 20))
	if b.smoke && way > 0 {
		return nil // Without a link the rest runs, too.
	}
	end := []string{"sh", "-c", program + ` session close --on "$1" bench; ` + program + " hosts close --all", "sh", d.target()}
	all, err = b.contestOf("`true` by a program of its own,"+where, "true", b.usual(20),
		&programSide{as: limpetName, argv: []string{program, "run", "-s", "bench", "--on", d.target()}, env: env, end: end}, oneshot, fresh)
	if err != nil {
		return err
	}
	b.report.compare(all)
	all, err = b.contestOf("`true` in a session of its own, by a program of its own,"+where, "true", b.usual(20),
		&programSide{as: limpetName, argv: []string{program, "run", "--on", d.target()}, env: env, end: []string{program, "hosts", "close", "--all"}}, oneshot)
	if err != nil {
		return err
	}
	b.report.compare(all)
	// Without what takes long by itself, and what a login of ssh has not in its PATH.
	stages, _ := without(programmersHour, func(tool string) bool { return tool == "go" || absent(tool) })
	if err := b.hourOf(stages, &visitor{side: limpet}, &visitor{side: oneshot, forgets: true}, ","+where, atLeastFaster(sharedSSH, 20)); err != nil || b.smoke {
		return err
	}
	return b.hourOf(stages, &visitor{side: limpet}, &visitor{side: fresh, forgets: true}, ","+where+", a connection for each", atLeastFaster(freshSSH, 20))
}

// The names of the sides.
const (
	sharedSSH = "ssh, a shared connection"
	freshSSH  = "ssh, a connection of its own"
	byteName  = "a byte there and back"
)

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
