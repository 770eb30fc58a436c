// Package local is the transport to this machine.
package local

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
)

// Transport starts processes on this machine. The zero value is ready.
type Transport struct{}

var _ transport.Transport = Transport{}

// Start implements [transport.Transport].
func (Transport) Start(ctx context.Context, spec transport.Spec) (transport.Conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	c := &conn{done: make(chan struct{})}
	cmd := exec.Command(spec.Path)
	cmd.Args, cmd.Dir, cmd.ExtraFiles = spec.Argv, spec.Dir, spec.Files
	cmd.Env = append(slices.Clip(spec.Env), spec.Own...)
	if cmd.Env == nil {
		cmd.Env = []string{} // Nil is this program's to os/exec.
	}
	// A session of its own: no terminal to be stopped by (SIGTTIN, SIGTTOU) or
	// to ask passwords on, and no group of ours to be signalled with.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: spec.Terminal}
	if who := spec.Credential; who != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: who.UID, Gid: who.GID}
	}

	var theirs []*os.File // the child's ends
	fail := func(err error) (transport.Conn, error) {
		for _, f := range append(theirs, c.stdin) {
			if f != nil {
				_ = f.Close() // Nothing was written yet.
			}
		}
		c.stdout.close()
		c.stderr.close()
		return nil, err
	}
	if cmd.Stdin = spec.Stdin; spec.Stdin == nil {
		r, w, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		cmd.Stdin, c.stdin, theirs = r, w, append(theirs, r)
	}
	var err error
	if cmd.Stdout, err = c.stdout.open(spec.Stdout, &theirs); err != nil {
		return fail(err)
	}
	if cmd.Stderr, err = c.stderr.open(spec.Stderr, &theirs); err != nil {
		return fail(err)
	}
	if err := proc.Start(cmd); err != nil {
		if errors.Is(err, syscall.EBADF) && beyondLimit(cmd) {
			err = &fs.PathError{Op: "fork/exec", Path: spec.Path, Err: syscall.EMFILE}
		}
		return fail(err)
	}
	for _, f := range theirs {
		_ = f.Close() // The child has its own.
	}
	c.cmd = cmd
	c.drains.Go(c.stdout.drain)
	c.drains.Go(c.stderr.drain)
	go c.wait()
	return c, nil
}

// beyondLimit reports whether the files of a command cannot have their numbers in its process, for the limit of open files. That
// is EBADF (dup(2)), as where one of them is not open. Package syscall moves those that are in the way, and a pipe of its own,
// behind the highest one.
func beyondLimit(cmd *exec.Cmd) bool {
	const spare = 2
	files := slices.Clone(cmd.ExtraFiles)
	for _, of := range []any{cmd.Stdin, cmd.Stdout, cmd.Stderr} { // Pipes, where Spec has none.
		f, _ := of.(*os.File)
		files = append(files, f)
	}
	highest := len(files)
	for _, f := range files {
		if f == nil {
			continue
		}
		fd := int(f.Fd())
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			return false
		}
		highest = max(highest, fd)
	}
	var limit unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit)
	return err == nil && uint64(highest+len(files)+spare) >= uint64(limit.Cur)
}

type conn struct {
	cmd    *exec.Cmd
	stdin  *os.File
	stdout tail
	stderr tail
	drains sync.WaitGroup

	done chan struct{}
	exit transport.Exit // set before done is closed
}

// wait is the one that reaps. It ends when the process does, which Close makes
// sure of.
func (c *conn) wait() {
	_ = c.cmd.Wait() // The state says it all.
	if st, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus); ok {
		c.exit = transport.Exit{Code: st.ExitStatus()}
		if st.Signaled() {
			c.exit.Signal = st.Signal()
		}
	}
	c.exit.Rusage, _ = c.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	close(c.done)
}

func (c *conn) Write(p []byte) (int, error) {
	if c.stdin == nil {
		return 0, fs.ErrClosed
	}
	_ = c.stdin.SetWriteDeadline(time.Now().Add(transport.WritePatience)) // A pipe of this machine has deadlines.
	return c.stdin.Write(p)
}

func (c *conn) Unread() int {
	if c.stdin == nil {
		return 0
	}
	return unread(c.stdin)
}

func (c *conn) CloseStdin() error {
	if c.stdin == nil {
		return nil
	}
	if err := c.stdin.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return err
	}
	return nil
}

func (c *conn) PID() int { return c.cmd.Process.Pid }

// Signal goes through os.Process, which holds a pidfd and knows whether it was
// waited for.
func (c *conn) Signal(sig syscall.Signal) error { return c.cmd.Process.Signal(sig) }

func (c *conn) Done() <-chan struct{} { return c.done }
func (c *conn) Exit() transport.Exit  { return c.exit }

func (c *conn) Said() (stdout, stderr []byte) {
	c.stdout.flush()
	c.stderr.flush()
	return c.stdout.bytes(), c.stderr.bytes()
}

// Forget implements [transport.Conn].
func (c *conn) Forget() {
	c.stdout.forget()
	c.stderr.forget()
}

func (c *conn) Close() error {
	err := c.CloseStdin()
	_ = c.cmd.Process.Kill() // os.ErrProcessDone is what we want.
	<-c.done
	c.stdout.close()
	c.stderr.close()
	c.drains.Wait()
	return err
}
