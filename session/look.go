package session

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/limpet-sh/limpet/command"
)

// ErrStateChanged means that a command, a Reset or a Rollback came between the look at a shell and the command that relied on it. The
// command did not run.
var ErrStateChanged = errors.New("nothing ran: the session was used since its state was looked at")

var errInSandbox = errors.New("what the shell has cannot be told: it is in a sandbox, which may have other files")

// Looked is what a session's shell had at a moment.
type Looked struct {
	State command.LiveState `json:"state"`
	Dir   string            `json:"dir"`
	Mark  string            `json:"mark"` // of the moment, for DoAt
}

// marks tell the states of one shell apart. A mark never comes again, also not in the next program that has the session.
type marks struct {
	of    string
	count atomic.Int64 // commands that have begun, and each Reset and Restore
}

func newMarks() *marks { return &marks{of: rand.Text()} }

func (m *marks) now() string { return m.of + "-" + strconv.FormatInt(m.count.Load(), 10) }

// markKey is that of the mark in the context of a command that relies on a look.
type markKey struct{}

// Look returns what the session's shell has now, as [shell.PersistentShell.Live] does, and fails where that does, and in a sandbox: whoever asks does not know
// which files it shows. It starts the shell if nobody has, and waits for the command that runs; ctx bounds that.
func (s *Session) Look(ctx context.Context) (Looked, error) {
	if s.policy != nil {
		return Looked{}, errInSandbox
	}
	sh, done, err := s.use(ctx)
	if err != nil {
		return Looked{}, err
	}
	defer done()
	mark := s.marks.now() // Before the look: what begins from here on makes another mark, and what has begun is waited for.
	state, err := sh.Live(ctx)
	if err != nil {
		return Looked{}, s.ofShell("use", err)
	}
	return Looked{State: state, Dir: sh.Dir(), Mark: mark}, nil
}

// DoAt is Do for a command that relies on what Look returned with that mark. If another command has begun since, or the shell was given another
// state, nothing runs and the error is ErrStateChanged.
func (s *Session) DoAt(ctx context.Context, mark string, req command.Request) (command.Result, error) {
	return s.Do(context.WithValue(ctx, markKey{}, mark), req)
}
