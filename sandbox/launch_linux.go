package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// The descriptors of bwrap, in the order of launching.files.
const (
	argsFD = 3 + iota
	seccompFD
	statusFD
	blockFD
)

// launch starts a process in a sandbox: gather, spawn, wait for the namespace,
// set its limits, find the process.
func launch(ctx context.Context, p Policy, spec transport.Spec) (transport.Conn, error) {
	bwrap, err := findBackend()
	if err != nil {
		return nil, err
	}
	if err := bwrap.supports(p); err != nil {
		return nil, err
	}
	h, err := lookAtHost()
	if err != nil {
		return nil, &Error{Code: ErrMount, Detail: "looking at the host: " + err.Error()}
	}
	filter, err := seccompProgram(p)
	if err != nil {
		return nil, err
	}
	l := &launching{policy: p, spec: spec, bwrap: bwrap}
	defer l.close()
	args := arguments(plan(p, h, place{dir: spec.Dir, sessionDir: spec.SessionDir}))
	if err := l.open(args, filter); err != nil {
		return nil, &Error{Code: ErrMount, Detail: "preparing the sandbox: " + err.Error()}
	}
	return l.start(ctx)
}

// launching is a start under way. It owns the files, all but those that the
// child has.
type launching struct {
	policy Policy
	spec   transport.Spec
	bwrap  backend
	files  []*os.File // for bwrap, from descriptor 3 on
	status *os.File   // what bwrap says of itself, as JSON
	block  *os.File   // a byte lets the sandbox go on; nil if it need not wait
}

func (l *launching) close() {
	for _, f := range append(l.files, l.status, l.block) {
		if f != nil {
			_ = f.Close() // What was to be said was said.
		}
	}
}

func (l *launching) open(args []string, filter []byte) error {
	own := []string{"--seccomp", fmt.Sprint(seccompFD), "--json-status-fd", fmt.Sprint(statusFD)}
	if l.policy.Limits != (Limits{}) {
		own = append(own, "--block-fd", fmt.Sprint(blockFD))
	}
	argsFile, err := sealed("limpet-args", []byte(strings.Join(append(own, args...), "\x00")+"\x00"))
	if err != nil {
		return err
	}
	l.files = append(l.files, argsFile)
	seccompFile, err := sealed("limpet-seccomp", filter)
	if err != nil {
		return err
	}
	l.files = append(l.files, seccompFile)
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	l.status, l.files = r, append(l.files, w)
	if l.policy.Limits != (Limits{}) {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		l.block, l.files = w, append(l.files, r)
	}
	return nil
}

// sealed is a file in memory that nobody can change any more (memfd_create(2)).
func sealed(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	_, err = f.Write(content)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SEAL|unix.F_SEAL_WRITE|unix.F_SEAL_GROW|unix.F_SEAL_SHRINK)
	}
	if err != nil {
		_ = f.Close() // Of no use.
		return nil, err
	}
	return f, nil
}

// inherited closes, for all that is executed from now on, what this program was
// started with: bwrap passes on every descriptor that it has.
var inherited = sync.OnceFunc(func() {
	_ = unix.CloseRange(3, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC) // Before Linux 5.11: Go's own are closed anyway.
})

func (l *launching) start(ctx context.Context) (transport.Conn, error) {
	inherited()
	spec := l.spec
	spec.Path, spec.Dir = l.bwrap.path, "/"
	// Only this is on the command line, where every user can read it.
	spec.Argv = append([]string{"bwrap", "--args", fmt.Sprint(argsFD), "--", l.spec.Path}, l.spec.Argv[1:]...)
	spec.Env, spec.Files = environ(l.policy, l.spec.Env), l.files
	threads.hold()
	c := &conn{drift: l.policy.Drift}
	var err error
	threads.do(func() { c.Conn, err = local.Transport{}.Start(ctx, spec) })
	if err != nil {
		threads.release()
		return nil, explain("", err)
	}
	for _, f := range l.files {
		_ = f.Close() // Bwrap has its own; its end of the pipe must be the only one.
	}
	l.files = nil
	if err := l.await(ctx, c); err != nil {
		_ = c.Close() // It is of no use.
		return nil, err
	}
	// Bwrap writes once more, at its end: nobody there to read would be SIGPIPE.
	c.status, l.status = l.status, nil
	return c, nil
}

// await waits until the process is there, and learns its pid.
func (l *launching) await(ctx context.Context, c *conn) error {
	stop := context.AfterFunc(ctx, func() { _ = l.status.SetReadDeadline(time.Unix(1, 0)) }) // A pipe can.
	defer stop()
	var status struct {
		ChildPID int `json:"child-pid"`
	}
	said := json.NewDecoder(l.status)
	if err := said.Decode(&status); err != nil || status.ChildPID == 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return l.failed(c)
	}
	init, err := proc.Read(status.ChildPID)
	if err != nil {
		return l.over(c, said)
	}
	c.init = init.ID()
	if err := l.limit(init.PID); err != nil {
		return err
	}
	const pause = 50 * time.Microsecond
	for ; ; time.Sleep(pause) {
		// The first process of the namespace is bwrap's own. Its one child
		// becomes what was asked for.
		for _, kid := range proc.Children(init.PID) {
			if !kid.Zombie() {
				c.process = kid.ID()
				if c.mounts, err = mounts(c.init); err != nil {
					return l.over(c, said)
				}
				c.pidfd, _ = unix.PidfdOpen(kid.PID, 0) // 0: how it ended is known from bwrap alone.
				return nil
			}
		}
		select {
		case <-c.Conn.Done():
			return l.over(c, said)
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
	}
}

// over tells a program that has ended before its pid was known from one that
// never started: bwrap says the exit code of the former alone.
func (l *launching) over(c *conn, said *json.Decoder) error {
	<-c.Conn.Done()
	var status struct {
		ExitCode *int `json:"exit-code"`
	}
	if err := said.Decode(&status); err == nil && status.ExitCode != nil {
		return nil
	}
	return l.failed(c)
}

// failed makes an error of bwrap's end.
func (l *launching) failed(c *conn) error {
	<-c.Conn.Done()
	_, said := c.Said()
	if l.spec.Stderr != nil {
		said = readBack(l.spec.Stderr)
	}
	return explain(string(said), nil)
}

// readBack reads the end of a file that was opened for writing.
func readBack(f *os.File) []byte {
	const most = 4096
	r, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil
	}
	defer r.Close() // Read only.
	b := make([]byte, most)
	n, _ := r.ReadAt(b, 0) // What can be read is what there is.
	return b[:n]
}

// limit sets the limits of a sandbox that waits for it, and lets it go on.
func (l *launching) limit(pid int) error {
	if l.block == nil {
		return nil
	}
	for _, one := range []struct {
		resource int
		value    uint64
	}{
		{unix.RLIMIT_NPROC, l.policy.Limits.NProc}, {unix.RLIMIT_NOFILE, l.policy.Limits.NoFile}, {unix.RLIMIT_FSIZE, l.policy.Limits.FileSize},
		{unix.RLIMIT_AS, l.policy.Limits.AddressSpace}, {unix.RLIMIT_CPU, l.policy.Limits.CPU},
	} {
		if one.value == 0 {
			continue
		}
		rlimit := unix.Rlimit{Cur: one.value, Max: one.value}
		if err := unix.Prlimit(pid, one.resource, &rlimit, nil); err != nil {
			return &Error{Code: ErrLimits, Detail: fmt.Sprintf("a limit of %d cannot be set: %v", one.value, err)}
		}
	}
	if _, err := l.block.Write([]byte{0}); err != nil {
		return &Error{Code: ErrLimits, Detail: "the sandbox did not wait for its limits: " + err.Error()}
	}
	return nil
}

// conn is a process in a sandbox. The embedded Conn is that of bwrap outside of
// it, which ends with the process.
type conn struct {
	transport.Conn
	init    proc.ID // the first process of the pid namespace: all others end with it
	process proc.ID // zero if it had ended before it was found
	pidfd   int
	status  *os.File // what bwrap says of itself
	mounts  []string // at the start
	drift   DriftMode
	once    sync.Once
}

// PID is the pid of the process itself, as the host has it.
func (c *conn) PID() int { return c.process.PID }

func (c *conn) Signal(sig unix.Signal) error {
	if c.process.PID == 0 {
		return os.ErrProcessDone
	}
	err := proc.Signal(c.process, sig)
	if errors.Is(err, proc.ErrGone) {
		return os.ErrProcessDone
	}
	return err
}

// Close ends all that runs in the sandbox.
func (c *conn) Close() error {
	if c.init.PID != 0 {
		_ = proc.Signal(c.init, unix.SIGKILL) // It may have ended; bwrap is killed below.
	}
	err := c.Conn.Close()
	c.once.Do(func() {
		if c.pidfd > 0 {
			_ = unix.Close(c.pidfd) // A pidfd has nothing to flush.
		}
		if c.status != nil {
			_ = c.status.Close() // Read only.
		}
		threads.release()
	})
	return err
}

// Exit says how the process ended. Bwrap says 128+n for signal n, as a shell
// does, but the kernel tells the two apart.
func (c *conn) Exit() transport.Exit {
	exit := c.Conn.Exit()
	if exit.Code <= 128 {
		return exit // There is nothing to be told apart.
	}
	status, ok := exitStatus(c.pidfd)
	if !ok {
		return exit
	}
	if status.Signaled() && 128+int(status.Signal()) == exit.Code {
		exit.Code, exit.Signal = -1, status.Signal()
	}
	return exit
}
