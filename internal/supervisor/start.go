package supervisor

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/proc"
)

// argv0 is the name by which the executable knows that it is a supervisor, and by
// which people find it in a list of processes.
const argv0 = "limpet-supervisor"

// The descriptors of a supervisor.
const (
	orderFD = 3 + iota
	replyFD
	filesFD // and those behind it, as the order says
)

// acknowledged follows the order when the program has the reply. Without it nobody
// knows of the job.
const acknowledged = "ok\n"

// abandonPatience is how much longer than its ladder a supervisor may take to give up.
const abandonPatience = 10 * time.Second

// reply is what a supervisor says of its start.
type reply struct {
	Process Process
	Err     string        // why there is none
	Path    string        // what could not be executed, or entered
	Errno   syscall.Errno // 0 if it was another error
}

// Handle is a supervisor that this program has started.
type Handle struct {
	Process Process

	lifeline *os.File
	done     chan struct{}
}

// Start starts a supervisor, and returns when the job runs. The files are those of an
// adopted process; they stay the caller's. The error is an [*os.PathError] if the
// program or the directory is not to be had, and then the job's directory says so,
// too. ctx bounds the start.
func Start(ctx context.Context, o Order, files ...*os.File) (*Handle, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	orderR, orderW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer orderR.Close() // The supervisor has its own.
	replyR, replyW, err := os.Pipe()
	if err != nil {
		_ = orderW.Close() // Nothing was written.
		return nil, err
	}
	defer replyR.Close() // Read only.
	said, err := private.OpenFile(filepath.Join(o.Dir, saidFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		_ = orderW.Close() // As above.
		_ = replyW.Close() // As above.
		return nil, err
	}
	defer said.Close() // The supervisor has its own.

	cmd := exec.Command(proc.Self())
	cmd.Args = []string{argv0, o.Dir, strconv.Itoa(len(files))}
	cmd.Dir = "/"
	cmd.Env = []string{"GOMAXPROCS=1"} // It copies and waits.
	if race, ok := os.LookupEnv("GORACE"); ok {
		cmd.Env = append(cmd.Env, "GORACE="+race) // For tests: a race detector sleeps for a second when it exits.
	}
	cmd.Stdout, cmd.Stderr = said, said
	cmd.ExtraFiles = append([]*os.File{orderR, replyW}, files...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // It is in nobody's way, and nobody in its.
	err = proc.Start(cmd)
	_ = replyW.Close() // The supervisor has its own.
	if err != nil {
		_ = orderW.Close() // Nothing was written.
		return nil, fmt.Errorf("supervisor: executing this program again: %w", err)
	}
	h := &Handle{lifeline: orderW, done: make(chan struct{})}
	// It is waited for as long as it lives, also when nobody cares for the job any more:
	// there is nobody else to reap it.
	go func() {
		_ = cmd.Wait() // What is to be known is in the directory.
		close(h.done)
	}()
	abandon := func(err error) (*Handle, error) {
		h.Release()                             // Unacknowledged, it ends what it has started.
		_ = cmd.Process.Signal(syscall.SIGCONT) // The job may have stopped it.
		select {
		case <-h.done:
		case <-time.After(o.Ladder.Grace() + abandonPatience):
			_ = cmd.Process.Kill() // It hangs.
			<-h.done
		}
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		_ = orderW.SetWriteDeadline(time.Unix(1, 0)) // A pipe can.
		_ = replyR.SetReadDeadline(time.Unix(1, 0))  // As above.
	})
	defer stop()
	if err := gob.NewEncoder(orderW).Encode(o); err != nil {
		return abandon(h.broken(o, err))
	}
	var r reply
	if err := json.NewDecoder(replyR).Decode(&r); err != nil {
		if ctx.Err() != nil {
			return abandon(context.Cause(ctx))
		}
		return abandon(h.broken(o, err))
	}
	switch {
	case r.Errno != 0:
		return abandon(&os.PathError{Op: r.Err, Path: r.Path, Err: r.Errno})
	case r.Err != "":
		return abandon(fmt.Errorf("supervisor: %s", r.Err))
	}
	if _, err := orderW.WriteString(acknowledged); err != nil {
		return abandon(h.broken(o, err))
	}
	h.Process = r.Process
	if o.Detached {
		h.Release()
	}
	return h, nil
}

// broken is the error for a supervisor that ended before it could say why.
func (h *Handle) broken(o Order, err error) error {
	const most = 2 << 10
	f, openErr := os.Open(filepath.Join(o.Dir, saidFile))
	if openErr == nil {
		defer f.Close() // Read only.
		if b, _ := io.ReadAll(io.LimitReader(f, most)); len(b) > 0 {
			return fmt.Errorf("supervisor: it ended at its start, and said: %s", b)
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.EPIPE) {
		return errNoSupervisor
	}
	return fmt.Errorf("supervisor: %w", err)
}

var errNoSupervisor = errors.New("supervisor: this program, executed again as " + argv0 + ", did not answer: an init function of it may have ended it, or the system may have killed it")

// Release lets go of the supervisor. One whose job was to live with the program ends
// it, if it still runs. It is safe to call twice.
func (h *Handle) Release() { _ = h.lifeline.Close() } // The order was read.

// Done is closed when the supervisor has ended.
func (h *Handle) Done() <-chan struct{} { return h.done }
