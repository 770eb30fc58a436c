package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// bareSide is a bash that is fed by a pipe and says "done" on another one. It
// is the floor: nothing that talks to a bash is faster. It is also no shell to
// use: stdout, stderr and the sign are one stream, a command that reads stdin
// eats the next one, a background job writes into its neighbour's output, and
// nothing can be interrupted.
type bareSide struct {
	// session starts bash in a session of its own, as limpet does. Where the scheduler
	// groups processes by session (sched(7), autogroup), that bash has a share of the
	// processor for itself, and a process of another session has to be switched to.
	session bool

	cmd   *exec.Cmd
	stdin *os.File
	out   *os.File
	lines *bufio.Reader
	count int
}

func (s *bareSide) name() string {
	if s.session {
		return sessionName
	}
	return bareName
}

func (s *bareSide) open(b *bench, dir string) error {
	theirIn, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	defer theirIn.Close() // The child has its own.
	out, theirOut, err := os.Pipe()
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	defer theirOut.Close() // The child has its own.
	s.cmd = exec.Command(b.bash, "--noprofile", "--norc")
	s.cmd.Dir, s.cmd.Env = dir, b.env
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: s.session}
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = theirIn, theirOut, theirOut
	if err := s.cmd.Start(); err != nil {
		return errors.Join(err, stdin.Close(), out.Close())
	}
	s.stdin, s.out, s.lines = stdin, out, bufio.NewReader(out)
	return nil
}

// sign is what the line that ends a command begins with.
const sign = "bench-done"

func (s *bareSide) run(_ context.Context, script string) (out output, err error) {
	s.count++
	if _, err := fmt.Fprintf(s.stdin, "%s\necho %s %d $?\n", script, sign, s.count); err != nil {
		return out, err
	}
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return out, fmt.Errorf("the bare bash ended: %w", err)
		}
		if rest, ok := strings.CutPrefix(line, sign); ok {
			var count int
			if _, err := fmt.Sscan(rest, &count, &out.code); err != nil || count != s.count {
				return out, fmt.Errorf("the bare bash said %q", line)
			}
			out.total = int64(len(out.stdout))
			return out, nil
		}
		out.stdout = append(out.stdout, line...)
	}
}

func (s *bareSide) close() error {
	err := s.stdin.Close()
	_, _ = io.Copy(io.Discard, s.lines) // To the end of file: bash has gone.
	return errors.Join(err, s.cmd.Wait(), s.out.Close())
}
