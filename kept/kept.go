// Package kept is sessions by name, each a shell that outlives the program which asks for it:
//
//	s, err := kept.Open(ctx, "build", nil)
//	...
//	defer s.Disconnect()
//	res, err := s.Run(ctx, "cd src && make")
//
// The next program of the same user that opens "build" finds it in src, with its variables, functions and jobs. The
// sessions are those of limpet run --session NAME, and can be listed, looked at and closed by limpet session. See
// docs/sessions.md for what they survive.
//
// Each session is kept by a process of its own: this program's executable, entered from init with "limpet-keeper" for
// its name, so that a program which imports the package need do nothing for it. It ends with the session: when that is
// closed, when nobody has used it for 24 hours and nothing runs in it, and when the machine is shut down.
package kept

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// Options say how a session is made, where there is none of the name. The zero value of each field, and a nil
// *Options, are good defaults.
type Options struct {
	// Existing refuses to make one: the error is session.ErrNotFound then.
	Existing bool

	// Dir is where its shell starts; empty means the current directory.
	Dir string

	// Env is the environment of its shell, its jobs and its terminals. Nil means shell.DefaultEnv: that of this
	// program, without what looks like a secret. It is in no file.
	Env []string

	// Bash, Login and InitFiles are as in shell.Options.
	Bash      string
	Login     bool
	InitFiles []string

	// IdleTimeout ends it when it was not used for so long, and nothing runs in it. 0 means 24 h.
	IdleTimeout time.Duration

	// StateDir is where sessions are kept. Empty means $XDG_STATE_HOME/limpet/keep, or
	// ~/.local/state/limpet/keep, where limpet itself has them.
	StateDir string
}

// Session is a session that is kept by a process of its own. Its methods are safe for concurrent use. Disconnect it: it
// stays. A command that runs when this program ends runs on.
type Session struct {
	session.Handle
	kept     *keeper.Kept
	registry *keeper.Registry
}

// Open returns the session of that name, and makes it if there is none. ctx bounds the search and the start, and not
// the session. Names are as in package session. Errors are session.ErrName, ErrNotFound with Options.Existing,
// ErrTooMany, and that the process which keeps it does not answer.
func Open(ctx context.Context, name string, opts *Options) (*Session, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	r, err := keeper.Open(o.StateDir)
	if err != nil {
		return nil, err
	}
	r.Version, r.Execute = keeper.Version(), keeper.Itself
	var spec *keeper.Spec
	if !o.Existing {
		if spec, err = o.spec(); err != nil {
			return nil, &session.Error{Op: "open", Session: name, Err: err}
		}
	}
	k, err := r.Session(ctx, name, spec)
	if err != nil {
		return nil, err
	}
	return &Session{k, k, r}, nil
}

func (o Options) spec() (*keeper.Spec, error) {
	spec := &keeper.Spec{Env: o.Env, Bash: o.Bash, Login: o.Login, Idle: max(o.IdleTimeout, 0)}
	if spec.Env == nil {
		spec.Env = shell.DefaultEnv()
	}
	paths := []string{o.Dir}
	if o.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return nil, err
		}
		paths[0] = dir
	}
	if strings.Contains(o.Bash, "/") {
		paths = append(paths, o.Bash)
	}
	// The process that keeps it is elsewhere.
	for i, path := range append(paths, o.InitFiles...) {
		full, err := filepath.Abs(path)
		switch {
		case err != nil:
			return nil, err
		case i == 0:
			spec.Dir = full
		case i < len(paths):
			spec.Bash = full
		default:
			spec.InitFiles = append(spec.InitFiles, full)
		}
	}
	return spec, nil
}

// Made reports whether the session was made by this Open.
func (s *Session) Made() bool { return s.kept.Made }

// Last says how the session of that name before this one has ended, and where it was, if this one was made and that
// is not long ago; else it is empty.
func (s *Session) Last() string {
	if s.kept.Was == nil {
		return ""
	}
	return s.kept.Was.String()
}

// Close ends the session, with all that runs in it, and waits until the process that kept it is gone, for ten seconds at
// most: the name is free then. It is safe to call twice.
func (s *Session) Close() error { return s.registry.Close(context.Background(), s.kept) }

// Disconnect lets go of the session, which stays. It ends calls that are under way, with session.ErrClosed; a command of
// theirs runs on. It is safe to call twice.
func (s *Session) Disconnect() { s.kept.Disconnect() }
