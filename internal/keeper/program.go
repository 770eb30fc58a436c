package keeper

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"

	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// Program is what [Serve] has to know of the program that it runs in.
type Program struct {
	// Version is that of the program, and Execute that of a [Registry], for forks of the session.
	Version string
	Execute func(dir string) *exec.Cmd

	// Sessions turns the Args of a Spec into options. It need not set the environment, which is that of the
	// process, nor the State. Questions is where it asks people: see [Registry.Questions].
	Sessions func(spec Spec, questions string) (*session.Options, error)

	// Record returns what writes down what is done, where the Spec says to.
	Record func(spec Spec) (func(context.Context, session.Record) error, error)

	// Agent serves an agent, until ctx or the connection ends. Calls that name no session mean the one of the name.
	// The agent may open others.
	Agent func(ctx context.Context, all *session.Registry, name string, options json.RawMessage, conn net.Conn)
}

var errArgs = errors.New("the session was made by limpet mcp --keep, and only limpet itself can keep it")

var errAudit = errors.New("what is done in the session is written down (--audit), which only limpet itself can do")

// options are those of the sessions.
func (k *keeper) options(spec Spec, dir string, ssh agent) (*session.Options, error) {
	opts := &session.Options{Shell: &shell.Options{Bash: spec.Bash, Dir: dir, Login: spec.Login, InitFiles: spec.InitFiles}}
	if len(spec.Args) > 0 {
		if k.program.Sessions == nil {
			return nil, errArgs
		}
		var err error
		if opts, err = k.program.Sessions(spec, k.registry.Questions()); err != nil {
			return nil, fmt.Errorf("%q: %w", spec.Args, err)
		}
	}
	if spec.Audit != "" && opts.Record == nil { // An agent's are told already.
		if k.program.Record == nil {
			return nil, errAudit
		}
		var err error
		if opts.Record, err = k.program.Record(spec); err != nil {
			return nil, err
		}
		opts.MustRecord = spec.AuditRequired
	}
	opts.Shell.Env = os.Environ()
	opts.Shell.RuntimeDir = rundir.Default(true) // That of a login goes with it.
	if opts.Policy == nil {                      // A sandbox has what its policy says.
		opts.Shell.StdinInShell, opts.Shell.UpdateEnv = true, ssh.update
	}
	opts.StateDir, opts.IdleTimeout = k.stateDir(), k.idle()
	opts.Jobs = &jobs.Options{MaxWait: math.MaxInt64} // Who waits ends that.
	return opts, nil
}

// current is the session that has the keeper's name.
func (k *keeper) current() *session.Session { return k.session.Load() }

// isWanted reports whether the keeper stays though the session of its name has ended: an agent has closed that and is
// there still, or it was idle while others of an agent are not.
func (k *keeper) isWanted() bool {
	return k.handler.Attached(k.record.Name) || len(k.sessions.List()) > 0
}

// anew opens a session of the keeper's name once more.
func (k *keeper) anew() error {
	s, err := k.sessions.Open(context.Background(), k.record.Name, nil)
	if err == nil {
		k.session.Store(s)
	}
	return err
}

// isClosing reports whether the keeper is about to end.
func (k *keeper) isClosing() bool {
	k.mu.Lock()
	closing := k.closing
	k.mu.Unlock()
	return closing || k.current().Closing() && !k.handler.Attached(k.record.Name)
}

// noteAgents takes down where the session is, and what it runs, which an agent may have changed: its commands do not
// come by the handler's book.
func (k *keeper) noteAgents() {
	if len(k.record.Spec.Args) == 0 && !k.handler.Attached(k.record.Name) {
		return
	}
	if info, err := k.current().Info(context.Background()); err == nil && info.Running == "" && !k.current().Closing() {
		k.note(now{Dir: info.Dir})
	}
}
