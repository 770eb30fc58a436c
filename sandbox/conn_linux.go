package sandbox

import (
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/egress"
	lifeline "github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
)

// conn is a process in a sandbox. The embedded Conn is that of bwrap outside of
// it, which ends with the process.
type conn struct {
	transport.Conn
	init    proc.ID // the first process of the pid namespace: all others end with it
	process proc.ID // zero if it had ended before it was found
	pidfd   int
	status  *os.File    // what bwrap says of itself
	mounts  *mountTable // it keeps the mounts, also when all has ended
	root    *os.File    // as the process sees it; nil where that is not to be had
	policy  Policy
	watch   *watcher
	cgroup  *cgroup       // nil if it has none of its own
	proxy   *egress.Proxy // nil if it has none
	private []string      // see Private
	left    func()        // frees what is of no use when all has ended

	closing sync.Once
	last    error // what the last look at the tripwire has found

	mu    sync.Mutex
	ended *transport.Exit // when the pidfd is closed
}

// PID is the pid of the process itself, as the host has it.
func (c *conn) PID() int { return c.process.PID }

// Init implements [transport.Enclosed].
func (c *conn) Init() int { return c.init.PID }

// Denied implements [transport.Explainer].
func (c *conn) Denied(exitCode int, output ...[]byte) string {
	if why := c.cgroup.met(); why != "" {
		return why
	}
	return c.policy.denied(exitCode, output...)
}

// Private implements [transport.Enclosed].
func (c *conn) Private() []string { return c.private }

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

// Close ends all that runs in the sandbox. The error may be an [*Error],
// ErrViolation: then what is protected was made since the last Check.
func (c *conn) Close() error {
	if c.init.PID != 0 {
		_ = proc.Signal(c.init, unix.SIGKILL) // It may have ended; bwrap is killed below.
	}
	err := c.Conn.Close()
	c.closing.Do(c.free)
	return errors.Join(err, c.last)
}

// dying is how long the processes of a sandbox may take to die: those that hang
// in the kernel, say on a disk, take longer, and are not waited for.
const dying = 5 * time.Second

// free is for the one Close that does the work. Bwrap has ended.
func (c *conn) free() {
	if c.init.PID != 0 {
		// The kernel ends the first process of a pid namespace when all others
		// are gone (pid_namespaces(7)): nothing is made behind our back then.
		proc.WaitAny([]proc.ID{c.init}, dying)
		lifeline.Drop(c.init)
	}
	if c.proxy != nil {
		_ = c.proxy.Close() // Always nil.
	}
	c.last = violated(c.watch.look())
	c.mounts.close()
	if c.root != nil {
		_ = c.root.Close() // Nothing is written by it.
	}
	c.cgroup.close()
	c.left()
	exit := c.Exit()
	c.mu.Lock()
	if c.ended = &exit; c.pidfd > 0 {
		_ = unix.Close(c.pidfd) // A pidfd has nothing to flush.
	}
	c.mu.Unlock()
	if c.status != nil {
		_ = c.status.Close() // Read only.
	}
	threads.release()
}

// Exit says how the process ended. Bwrap says 128+n for signal n, as a shell
// does, but the kernel tells the two apart.
func (c *conn) Exit() transport.Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended != nil {
		return *c.ended
	}
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
