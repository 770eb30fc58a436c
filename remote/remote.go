// Package remote is sessions on another machine, each a shell that outlives the connection:
//
//	h, err := remote.Dial(ctx, "ssh://build-box")
//	...
//	defer h.Close()
//	s, err := h.Open(ctx, "build", nil)
//	...
//	res, err := s.Run(ctx, "cd src && make")
//
// The next program that opens "build" over there finds it in src, with its variables, functions and jobs, as with package kept. The
// commands, their limits and their deadlines are over there, and a session does what one of this program does, with the same errors.
//
// A machine is reached by a command that its user has already, whose standard input and output reach a POSIX sh over there. That sh is
// asked whether there is a limpet of a version that fits, which is used then. If there is none, this program is copied there, which
// importing the package prepares it for: executed there under the name "limpet-connect" or "limpet-keeper" it serves the connection, or
// keeps a session, and does nothing else. It is for the user alone, in ~/.cache/limpet/bin, or in a directory for temporary files if that
// cannot be. There must be a bash, and no network is opened. See docs/remote.md.
//
// A connection that is lost is dialled again while a call waits for it, and a command goes on where it was: see [Dialer.Reconnect].
//
// Nothing of this machine's environment, files and keys goes over but what is named.
package remote

import (
	"context"
	"time"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/session"
)

// Error says why a machine is not reached, or not any more; errors.As finds it.
type Error = host.Error

// What is wrong, for errors.Is.
var (
	ErrTarget    = host.ErrTarget    // a text does not say where a machine is
	ErrUnreached = host.ErrUnreached // the machine was not reached: nothing ran there
	ErrLost      = host.ErrLost      // the connection is lost; what is kept there stays
	ErrNoBash    = host.ErrNoBash    // there is no bash over there
	ErrNoProgram = host.ErrNoProgram // there is no limpet over there, and none for that system to copy
	ErrNoPlace   = host.ErrNoPlace   // there is no directory over there which a program can be copied to
	ErrSpoiled   = host.ErrSpoiled   // the copy is not what was sent
)

// Dialer reaches machines. The zero value is ready. It can be used by several goroutines, if its fields are not changed any more.
type Dialer struct {
	// Executable is a limpet for systems as this one, which is copied instead of this program. Empty means that of Agents, or else this
	// program.
	Executable string

	// Agents is a directory with limpet for systems, in files limpet-OS-ARCH (limpet-linux-arm64), as Go calls them. They are also
	// looked for beside this program. One that is of another version, or that others can write to, is passed over. Command
	// limpet-connect is what is best there: a program for connections and sessions alone. For systems as this one it is optional.
	Agents string

	// Progress, if not nil, is called as limpet is copied, with the bytes that are sent and those that are to be.
	Progress func(sent, of int64)

	// Reconnect is how long a machine is dialled again whose connection is lost, while a call waits for it: a command goes on where it was.
	// 0 means 5 min; a negative one is not.
	Reconnect time.Duration

	// Patience is how long nothing may be heard from there before the machine is reached. 0 means 30 s.
	Patience time.Duration
}

// Dial reaches a machine:
//
//	ssh://[USER@]HOST[:PORT]      ssh(1), with the user's configuration, agent and known hosts, which asks nobody
//	docker://[USER@]CONTAINER     docker exec, in a container that runs
//	podman://[USER@]CONTAINER     podman exec
//	kube://NAMESPACE/POD[/CONTAINER], kube://CONTEXT/NAMESPACE/POD/[CONTAINER]
//	                              kubectl exec, in a pod that runs. Without a context it is the current one; what is no letter,
//	                              digit, dot or dash is escaped, as %2F for a slash
//	unix:///PATH                  a unix socket of this user or root, at which each connection reaches a limpet connect --stdio of its own
//	exec:ARGV                     a command whose standard input and output reach a POSIX sh there: exec:limactl shell dev sh. It is
//	                              words as in bash, quoted where that is needed, without expansions
//
// ctx bounds that, and not the connection. It takes a few round trips, and some seconds more the first time, for the copy. Errors are
// ErrTarget, and an [*Error] that is ErrUnreached, or the cause of ctx.
func Dial(ctx context.Context, target string) (*Host, error) { return (&Dialer{}).Dial(ctx, target) }

// Dial is the function Dial, as the fields say.
func (d *Dialer) Dial(ctx context.Context, target string) (*Host, error) {
	t, err := host.ParseTarget(target)
	if err != nil {
		return nil, err
	}
	h, err := host.Dial(ctx, t, &host.Options{Executable: d.Executable, Agents: d.Agents, Progress: d.Progress, Reconnect: d.Reconnect, Patience: d.Patience})
	if err != nil {
		return nil, err
	}
	return &Host{h}, nil
}

// Host is a machine that is reached. Its methods are safe for concurrent use. Close it.
type Host struct{ host *host.Host }

// Options say how a session is made, where there is none of the name. Paths are those of the other machine, and absolute. The zero
// value of each field, and a nil *Options, are good defaults.
type Options struct {
	Existing    bool   // refuses to make one: the error is session.ErrNotFound then
	Dir         string // where its shell starts; empty means the home directory
	Bash        string // as in shell.Options, as are the next two
	Login       bool
	InitFiles   []string
	IdleTimeout time.Duration // ends it when it was not used for so long, and nothing runs in it; 0 means 24 h

	// Temporary ends the session with Close, if it was made by this Open. If the connection is lost before that it stays, as others do.
	Temporary bool
}

// Session is a session on another machine. Its methods are safe for concurrent use. It stays when the connection ends; Close ends it.
type Session struct {
	session.Handle
	host *host.Host
	kept *keeper.Kept
}

// Open returns the session of that name, and makes it if there is none. ctx bounds that, and not the session. Errors are
// session.ErrName, ErrNotFound with Options.Existing, ErrTooMany, and ErrLost.
func (h *Host) Open(ctx context.Context, name string, opts *Options) (*Session, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	spec := &keeper.Spec{Dir: o.Dir, Bash: o.Bash, Login: o.Login, InitFiles: o.InitFiles, Idle: max(o.IdleTimeout, 0)}
	open := h.host.Session
	switch {
	case o.Existing:
		spec = nil
	case o.Temporary:
		open = h.host.Temporary
	}
	k, err := open(ctx, name, spec)
	if err != nil {
		return nil, err
	}
	return &Session{k, h.host, k}, nil
}

// List returns what is known of the sessions over there, the oldest first.
func (h *Host) List(ctx context.Context) ([]session.Info, error) {
	list, err := h.host.List(ctx, false)
	if err != nil {
		return nil, err
	}
	infos := make([]session.Info, 0, len(list))
	for _, one := range list {
		if one.Info != nil {
			infos = append(infos, *one.Info)
		}
	}
	return infos, nil
}

// Close ends the temporary sessions, and the connection; other sessions stay, with what runs in them. Calls that are under way end with
// session.ErrClosed. The error says that a session could not be ended. It waits for the command that reaches the machine, for a few
// seconds at most, and is safe to call twice.
func (h *Host) Close() error { return h.host.Disconnect() }

// Made reports whether the session was made by this Open.
func (s *Session) Made() bool { return s.kept.Made }

// Last says how the session of that name before this one has ended, and where it was, if this one was made and that is not long ago;
// else it is empty.
func (s *Session) Last() string {
	if s.kept.Was == nil {
		return ""
	}
	return s.kept.Was.String()
}

// Close ends the session, with all that runs in it, and waits until the process over there is gone that kept it, for 15 seconds at
// most. It is safe to call twice.
func (s *Session) Close() error {
	const patience = 15 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.host.Close(ctx, s.kept)
}
