// Package askpass lets programs that run in a shell ask a person for a password: it is their SUDO_ASKPASS and SSH_ASKPASS, which git
// uses, too. They start a helper, which is this program by another name; the helper asks a [Server] by a unix socket, and prints
// the answer.
//
//	sudo -A, ssh, git        helper (DIR/limpet-askpass)         Server (DIR/socket)
//	  |-- executes, with the prompt -->|
//	  |                                |-- {"prompt":...} ------------>|  who is it (SO_PEERCRED), below
//	  |                                |                               |  which shell, since when: a Question
//	  |                                |                               |  for Options.Ask
//	  |                                |<-- "y" SECRET, or "n" REASON -|
//	  |<-- SECRET, or an exit code of 1|
//
// A Server answers processes that descend from its shell, and no others. That is no proof of what they do with the answer: any of
// them may start the helper. It wants /proc, and so Linux.
package askpass

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/rundir"
	"github.com/limpet-sh/limpet/internal/socket"
)

// DefaultTimeout is how long a person has to answer.
const DefaultTimeout = 45 * time.Second

// The files of a server in its directory.
const (
	helperName = "limpet-askpass" // by this name the program knows that it is the helper
	socketName = "socket"
)

// dirPrefix begins the names of servers' directories, beside those of sessions.
const dirPrefix = ".askpass-"

// Options say how a [Server] asks. Ask and Shell must be set.
type Options struct {
	// RuntimeDir is the directory below which the server's own one is made. Empty means that of rundir.Default.
	RuntimeDir string

	// Ask asks the person and returns the answer. It is called by one goroutine at a time. Its context ends when the program does not
	// wait any more, at the Timeout, and when the server is closed. Its error is told to the program, as a text. The
	// server overwrites the answer with zeros once the program has it.
	Ask func(ctx context.Context, q command.PasswordQuestion) ([]byte, error)

	// Shell reports whether a process is the first one of the shell's. It is called with the process that asks, its parent, and so on,
	// and the chain ends at the first for which it returns true. Several goroutines may call it.
	Shell func(proc.Stat) bool

	// Timeout bounds a call of Ask. 0 means DefaultTimeout.
	Timeout time.Duration
}

// Server answers the helpers of one shell. Its methods are safe for concurrent use. Close it.
type Server struct {
	opts     Options
	program  *rundir.Program
	dir      string
	listener *net.UnixListener
	life     context.Context
	end      context.CancelCauseFunc
	over     sync.WaitGroup
	places   chan struct{} // has a token for each connection
	turn     chan struct{} // has a token while a question is asked
	last     asked         // of whoever has the turn
	closing  sync.Once
}

// mostAtOnce bounds the connections: others are closed at once.
const mostAtOnce = 32

// errClosed is why questions end that are asked while the server is closed.
var errClosed = errors.New("the limpet that would have asked has ended")

// Serve makes the directory, the helper and the socket, and answers until Close. Where there is no /proc the error is
// [errors.ErrUnsupported].
func Serve(opts Options) (*Server, error) {
	if _, err := proc.Read(os.Getpid()); err != nil {
		return nil, fmt.Errorf("askpass: looking at processes: %w", err)
	}
	if opts.Timeout <= 0 {
		opts.Timeout = DefaultTimeout
	}
	program, err := rundir.Acquire(opts.RuntimeDir, environ.NewID(), false)
	if err != nil {
		return nil, fmt.Errorf("askpass: %w", err)
	}
	s := &Server{
		opts: opts, program: program, dir: filepath.Join(program.Path, dirPrefix+environ.NewID()),
		places: make(chan struct{}, mostAtOnce), turn: make(chan struct{}, 1),
	}
	if err := s.listen(); err != nil {
		_ = os.RemoveAll(s.dir) // Best effort: it goes with the program's directory.
		program.Release()
		return nil, fmt.Errorf("askpass: %w", err)
	}
	s.life, s.end = context.WithCancelCause(context.Background())
	s.over.Go(s.accept)
	return s, nil
}

func (s *Server) listen() (err error) {
	if err := private.Mkdir(s.dir); err != nil {
		return err
	}
	// Not by its path, if that can be: the file may be replaced by another version, or be gone. A symbolic link can be executed where the
	// directory is mounted noexec.
	self, err := proc.Executable()
	if err != nil {
		return err
	}
	if err := os.Symlink(self, s.helper()); err != nil {
		return err
	}
	s.listener, err = socket.Listen(s.dir, socketName)
	return err
}

func (s *Server) helper() string { return filepath.Join(s.dir, helperName) }

// requireVar says whether ssh asks by SSH_ASKPASS.
const requireVar = "SSH_ASKPASS_REQUIRE"

// Names are the variables that [Server.Env] sets.
var Names = []string{"SUDO_ASKPASS", "SSH_ASKPASS", requireVar}

// Env returns env with the variables that lead to the server, as far as env does not have them. An entry without "=" is replaced. Of a
// nil Server it returns env.
//
// GIT_ASKPASS is left alone: without it git uses core.askPass of its configuration, and then SSH_ASKPASS (gitcredentials(7)).
func (s *Server) Env(env []string) []string {
	if s == nil {
		return env
	}
	has := func(name string) bool {
		return slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, name+"=") })
	}
	values := map[string]string{"SUDO_ASKPASS": s.helper()}
	if !has("SSH_ASKPASS") {
		values["SSH_ASKPASS"] = s.helper()
		// Otherwise ssh asks so only if DISPLAY is set, which it is not where there is no screen (ssh(1)).
		values[requireVar] = "force"
	}
	out := slices.Clone(env)
	for _, name := range Names {
		value, ours := values[name]
		if !ours || has(name) {
			continue
		}
		out = append(slices.DeleteFunc(out, func(entry string) bool { return entry == name }), name+"="+value)
	}
	return out
}

// accept takes connections until the listener is closed.
func (s *Server) accept() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // No descriptors, for one. Others may be freed.
			select {
			case <-s.life.Done():
				return
			case <-time.After(pauseAfterError):
			}
			continue
		}
		select {
		case s.places <- struct{}{}:
			s.over.Go(func() {
				defer func() { <-s.places }()
				s.serve(conn)
			})
		default:
			_ = conn.Close() // Nothing was asked.
		}
	}
}

const pauseAfterError = 100 * time.Millisecond

// Close ends all questions, waits for them, and removes the files. It is safe to call twice, and on nil.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.closing.Do(func() {
		s.end(errClosed)
		_ = s.listener.Close() // Nobody else closes it.
		s.over.Wait()
		_ = os.RemoveAll(s.dir) // Best effort: it goes with the program's directory.
		s.program.Release()
	})
}

// Strip returns env without the variables that lead to a server of this package: for programs that it would not answer, as they do not
// descend from its shell. It changes env.
func Strip(env []string) []string {
	ours := func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return (name == "SUDO_ASKPASS" || name == "SSH_ASKPASS") && filepath.Base(value) == helperName
	}
	force := slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "SSH_ASKPASS=") && ours(entry) })
	return slices.DeleteFunc(env, func(entry string) bool { return ours(entry) || force && strings.HasPrefix(entry, requireVar+"=") })
}
