package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/socket"
)

// process is the command that reaches a machine, or a socket that does. End it.
type process struct {
	name   string    // for people
	cmd    *exec.Cmd // nil if it is a socket, which says nothing on its standard error, and has not ended before end is called
	in     *os.File  // its standard input
	out    *os.File  // its standard output
	stderr noise
	drain  *os.File

	over    chan struct{} // closed when it has ended
	drained chan struct{} // closed when its standard error was read to the end
	once    sync.Once
}

// start starts it, as one of the caller's terminal only if it is not own: then it is in a session of its own, as the keys of a terminal
// are for limpet.
func start(name string, argv []string, own bool) (*process, error) {
	p := &process{name: name, cmd: exec.Command(argv[0], argv[1:]...), over: make(chan struct{}), drained: make(chan struct{})}
	var files []*os.File
	defer func() { closeAll(files) }()
	pair := func() (r, w *os.File, err error) {
		if r, w, err = os.Pipe(); err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	stdin, in, err1 := pair()
	out, stdout, err2 := pair()
	drain, stderr, err3 := pair()
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	p.in, p.out, p.drain = in, out, drain
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = stdin, stdout, stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: own}
	if err := proc.Start(p.cmd); err != nil {
		return nil, err
	}
	files = []*os.File{stdin, stdout, stderr} // They are the process's.
	go func() {
		defer close(p.drained)
		_, _ = io.Copy(&p.stderr, drain) // It ends with the process, or by end.
	}()
	go func() {
		defer close(p.over)
		_ = p.cmd.Wait() // Its state says it.
	}()
	return p, nil
}

// socketName is what a socket is called that reaches a machine.
const socketName = "the other end of the socket"

// joinSocket connects to a socket, which has two descriptors then, as a command has two pipes. ctx bounds that.
func joinSocket(ctx context.Context, path string) (*process, error) {
	conn, err := socket.Dial(ctx, filepath.Dir(path), filepath.Base(path))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOffer, err)
	}
	defer conn.Close() // The process has descriptors of its own.
	if err := socket.CheckServer(conn); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", errForeign, path, err)
	}
	p := &process{name: socketName, over: make(chan struct{}), drained: make(chan struct{})}
	close(p.drained)
	var err1, err2 error
	unix := conn.(*net.UnixConn) // As Dial makes it.
	p.in, err1 = unix.File()
	p.out, err2 = unix.File()
	var none *os.File
	if p.drain, none, err = os.Pipe(); err == nil {
		_ = none.Close() // Its reader is at the end.
	}
	if err := errors.Join(err1, err2, err); err != nil {
		closeAll([]*os.File{p.in, p.out, p.drain}) // A nil one is none.
		return nil, err
	}
	return p, nil
}

var (
	// errOffer means that a socket does not lead to a limpet connect.
	errOffer = errors.New("no limpet connect is to be had at the socket")

	// errForeign means that a socket is another user's.
	errForeign = errors.New("the socket is not to be trusted")
)

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // They are pipes.
	}
}

// The times that the process has, to end when its input is closed, and when it is asked to.
const (
	leavePatience = 2 * time.Second
	termPatience  = time.Second
)

// end closes the pipes, and waits for the end of the process, which is helped along if it does not come. It is safe to call
// twice.
func (p *process) end() {
	p.once.Do(func() {
		_ = p.in.Close()  // It may be closed.
		_ = p.out.Close() // As above.
		if p.cmd == nil {
			_ = p.drain.Close() // Nothing is in it.
			close(p.over)
			return
		}
		p.await(leavePatience)
		for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
			if !p.await(0) {
				_ = p.cmd.Process.Signal(sig) // It may have ended just now.
				p.await(termPatience)
			}
		}
		<-p.over
		select { // Something that it has left may hold it.
		case <-p.drained:
		case <-time.After(termPatience):
		}
		_ = p.drain.Close() // Read only.
		<-p.drained
	})
}

// detach stops reading what the process says on its standard error: another program will. It must be done before that program is
// started, as a pipe which is passed on is one whose reads block, and that nothing ends.
func (p *process) detach() {
	_ = p.drain.SetReadDeadline(time.Unix(1, 0)) // A pipe has deadlines.
	<-p.drained
}

// release leaves the process to another program, which has its pipes.
func (p *process) release() {
	p.once.Do(func() { closeAll([]*os.File{p.in, p.out, p.drain}) })
}

// await waits for the end of the process, and reports whether it has come.
func (p *process) await(patience time.Duration) bool {
	select {
	case <-p.over:
		return true
	case <-time.After(patience):
	}
	select { // Both may have come.
	case <-p.over:
		return true
	default:
		return false
	}
}

// lostBy is why a connection is lost that ended with an error, in words that need no knowledge of pipes. The process may be ended a moment later.
func lostBy(why error, name string) error {
	if errors.Is(why, io.EOF) || isBroken(why) {
		return fmt.Errorf("%s has closed it", name)
	}
	return why
}

// ended says how the process has ended; nil if it has not, or is a socket.
func (p *process) ended() error {
	if p.cmd == nil {
		return nil
	}
	const soon = 100 * time.Millisecond // Its pipes are closed before.
	if !p.await(soon) {
		return nil
	}
	e := &endedError{name: p.name, code: p.cmd.ProcessState.ExitCode()}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		e.signal = ws.Signal()
	}
	return e
}

// isBroken reports whether the reader of a pipe is gone.
func isBroken(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}
