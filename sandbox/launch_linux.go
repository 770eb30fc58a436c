package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	lifeline "github.com/limpet-sh/limpet/internal/guard"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// firstFD is the first descriptor behind stderr.
const firstFD = 3

// The files of bwrap, in the order of launching.files.
const (
	argsFile = iota
	seccompFile
	statusFile
	blockFile
)

// launch starts a process in a sandbox: gather, spawn, wait for the namespace,
// set its limits, find the process.
func (t *Transport) launch(ctx context.Context, p Policy, spec transport.Spec) (transport.Conn, error) {
	bwrap, err := findBackend()
	if err != nil {
		return nil, err
	}
	if err := bwrap.supports(p); err != nil {
		return nil, err
	}
	h, err := lookAtHost(p.user())
	if err != nil {
		return nil, &Error{Code: ErrMount, Detail: "looking at the host: " + err.Error()}
	}
	if p.Net.Mode == DomainsNet {
		if _, err := os.Stat(h.self); err != nil {
			return nil, &Error{
				Code: ErrProxy, Detail: "the executable of this program is gone, and opens the port of the proxy in the sandbox: " + err.Error(),
				Hint: "start the program again",
			}
		}
	}
	filter, err := seccompProgram(p)
	if err != nil {
		return nil, err
	}
	at := place{sessionDir: spec.SessionDir}
	mounts := mountsOf(p, h, at)
	at.dir = mounts.view.startDir(spec.Dir)
	if err := errors.Join(bwrap.outOf(mounts.view), mounts.view.keepsPrivate(spec.SessionDir)); err != nil {
		return nil, err
	}
	l := &launching{policy: p, spec: spec, bwrap: bwrap, points: mounts.points, home: h.home, denied: t.Denied}
	defer l.close()
	if err := prepare(p, l.points); err != nil {
		return nil, err
	}
	if l.cgroup, err = cgroupFor(p.Limits); err != nil {
		return nil, err
	}
	l.watch = newWatcher(p, t.Violations)
	if err := l.open(slices.Concat(setenv(environ(p, h, spec)), arguments(plan(p, h, at))), filter); err != nil {
		return nil, &Error{Code: ErrMount, Detail: "preparing the sandbox: " + err.Error()}
	}
	return l.start(ctx)
}

// launching is a start under way. It owns the files, all but those that the
// child has, and the cgroup until there is a conn that does.
type launching struct {
	policy  Policy
	spec    transport.Spec
	bwrap   backend
	points  []point
	home    string
	cgroup  *cgroup
	watch   *watcher
	files   []*os.File // for bwrap, behind those of the spec
	status  *os.File   // what bwrap says of itself, as JSON
	block   *os.File   // a byte lets the sandbox go on; nil if it need not wait
	wrapper []string   // the helper's part of the command line
	helper  *os.File   // by which the socket of the proxy comes; nil if there is none
	denied  func(host string, port uint16, why string)
}

func (l *launching) close() {
	for _, f := range append(l.files, l.status, l.block, l.helper) {
		if f != nil {
			_ = f.Close() // What was to be said was said.
		}
	}
	l.cgroup.close()
}

// fd is the descriptor that a file of launching.files has in bwrap. Those before it are the
// process' own: bwrap passes them on, and closes what is behind them.
func (l *launching) fd(file int) string { return fmt.Sprint(firstFD + len(l.spec.Files) + file) }

func (l *launching) open(args []string, filter []byte) error {
	own := []string{"--seccomp", l.fd(seccompFile), "--json-status-fd", l.fd(statusFile)}
	if l.policy.Limits != (Limits{}) {
		own = append(own, "--block-fd", l.fd(blockFile))
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{{"limpet-args", []byte(strings.Join(slices.Concat(own, args), "\x00") + "\x00")}, {"limpet-seccomp", filter}} {
		f, err := sealed(file.name, file.content)
		if err != nil {
			return err
		}
		l.files = append(l.files, f)
	}
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
	if l.policy.Net.Mode == DomainsNet {
		return l.askForSocket()
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

// closeOnExec keeps from what is executed next all that this program has open:
// bwrap passes on every descriptor that it has. What somebody opened to pass it on
// by himself is closed then as well.
func closeOnExec() error {
	err := unix.CloseRange(firstFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Before Linux 5.11 there is no such flag, and before 5.9 no such call.
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return err
	}
	defer dir.Close() // Read only.
	names, err := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, _ := strconv.Atoi(name); fd >= firstFD { // They are numbers.
			unix.CloseOnExec(fd)
		}
	}
	return err
}

func (l *launching) start(ctx context.Context) (transport.Conn, error) {
	spec := l.spec
	spec.Path, spec.Dir = l.bwrap.path, "/"
	// Only this is on the command line, where every user can read it.
	spec.Argv = slices.Concat([]string{"bwrap", "--args", l.fd(argsFile), "--"}, l.wrapper, []string{l.spec.Path}, l.spec.Argv[1:])
	spec.Env, spec.Own = nil, nil // They are in bwrap's arguments.
	if who := l.policy.user(); who != ourselves() {
		spec.Credential = &who
	}
	handed := slices.Concat([]*os.File{spec.Stdin}, spec.Files)
	for i, f := range handed {
		pipe, err := inputPipe(f, l.policy.user())
		if err != nil {
			return nil, &Error{Code: ErrMount, Detail: fmt.Sprintf("%s cannot be handed over: %v", handedName(i, f), err), Hint: "give a file or a pipe instead"}
		}
		if pipe != nil {
			defer pipe.Close() // Bwrap has its own, or did not start.
			handed[i] = pipe
		}
	}
	threads.hold()
	c := &conn{policy: l.policy, watch: l.watch, private: privatePlaces(l.policy, l.home)}
	var err error
	if c.Conn, err = l.fork(ctx, spec, handed); err != nil {
		threads.release()
		return nil, err
	}
	for _, f := range l.files {
		_ = f.Close() // Bwrap has its own; its end of the pipe must be the only one.
	}
	l.files = nil
	c.cgroup, l.cgroup = l.cgroup, nil
	c.left = func() { removeSession(l.points, l.spec.SessionDir) }
	if err := l.await(ctx, c); err != nil {
		_ = c.Close() // It is of no use.
		return nil, err
	}
	// Bwrap writes once more, at its end: nobody there to read would be SIGPIPE.
	c.status, l.status = l.status, nil
	return c, nil
}

// handedName says what the i-th of the files is that are handed over. A shell has the
// program's own stdin further up.
func handedName(i int, f *os.File) string {
	switch {
	case f.Name() == os.Stdin.Name():
		return "standard input"
	case i == 0:
		return "stdin " + f.Name()
	}
	return fmt.Sprintf("descriptor %d %s", firstFD+i-1, f.Name())
}

// fork starts bwrap on the thread that is there for it, with what is handed over of the
// caller's: stdin, and the descriptors from 3 on.
func (l *launching) fork(ctx context.Context, spec transport.Spec, handed []*os.File) (bwrap transport.Conn, err error) {
	start := func() {
		if err = closeOnExec(); err != nil {
			return
		}
		for i, f := range handed {
			device, failed := inputDevice(f)
			if err = failed; err != nil {
				return
			}
			if device != nil {
				defer device.Close() // Bwrap has its own.
				handed[i] = device
			}
		}
		spec.Stdin, spec.Files = handed[0], slices.Concat(handed[1:], l.files)
		bwrap, err = local.Transport{}.Start(ctx, spec)
	}
	var failed error
	threads.do(func() {
		if l.policy.user().UID == 0 { // Whose these files are.
			failed = withReadOnly(append([]string{l.bwrap.path}, devices...), start)
		} else {
			start()
		}
	})
	if ctx.Err() != nil && bwrap == nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, explain("", err)
	}
	if failed != nil {
		if bwrap != nil {
			_ = bwrap.Close() // It is of no use.
		}
		return nil, &Error{Code: ErrMount, Detail: "preparing the sandbox: " + failed.Error(), Hint: readOnlyHint(failed)}
	}
	return bwrap, nil
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
	lifeline.Hold(c.init)
	if err := l.limit(c); err != nil {
		return err
	}
	if l.helper != nil {
		if err := l.serve(ctx, c); err != nil {
			return err
		}
	}
	const pause = 50 * time.Microsecond
	for ; ; time.Sleep(pause) {
		// The first process of the namespace is bwrap's own. Its one child
		// becomes what was asked for, if there is such a program.
		for _, kid := range proc.Children(init.PID) {
			if !kid.Zombie() && kid.Execed {
				c.process = kid.ID()
				if c.mounts, err = openMountTable(c.init, helperPath, bwrapProc, l.bwrap.path); err != nil {
					return l.over(c, said)
				}
				c.root = openRoot(c.process)
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
	r, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer r.Close() // Read only.
	b := make([]byte, most)
	n, err := r.ReadAt(b, 0) // What can be read is what there is.
	if errors.Is(err, unix.ESPIPE) {
		_ = r.SetReadDeadline(time.Now()) // All has been said: nobody shall be waited for.
		n, _ = r.Read(b)
	}
	return b[:n]
}
