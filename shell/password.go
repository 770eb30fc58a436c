package shell

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/askpass"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport/local"
)

// askPasswords has programs of the shell ask by Options.AskPassword.
func (s *PersistentShell) askPasswords() (err error) {
	if _, here := s.opts.Transport.(local.Transport); s.opts.AskPassword == nil || !here {
		return nil // A sandbox, for one, does not show what the programs would need.
	}
	ask := func(ctx context.Context, q command.PasswordQuestion) ([]byte, error) {
		if q.Program == "sudo" {
			s.ticket.Store(true) // Before the answer: with it, the command may end at once.
		}
		return s.opts.AskPassword(ctx, q)
	}
	s.asks, err = askpass.Serve(askpass.Options{RuntimeDir: s.opts.RuntimeDir, Ask: ask, Shell: s.isFirst})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // As the option says.
	}
	if err == nil {
		s.opts.Env = s.asks.Env(s.opts.Env)
	}
	return err
}

// endTicket has sudo forget the password that it was given: it would let all that this bash runs later do without, for some minutes. Only
// what has the same parent can say so, hence bash itself runs it. The caller has the turn.
func (s *PersistentShell) endTicket() {
	if !s.ticket.Load() || s.bash == nil || s.bash.dead() {
		return // With another bash the ticket is none: sudo knows its parent by the time of its start, too.
	}
	ctx, cancel := context.WithTimeout(context.Background(), ticketPatience)
	defer cancel()
	s.ticket.Store(false)
	res, err := s.bash.runInternal(ctx, string(s.bash.exchange.Names)+"command -p sudo -k", 1<<10)
	if err != nil || res.ExitCode != 0 {
		s.opts.Logger.Warn("limpet: sudo may remember a password for the next commands", "status", res.ExitCode, "err", err)
	}
}

// ticketPatience bounds sudo -k, which asks nobody.
const ticketPatience = 10 * time.Second

// isFirst reports whether a process was started by this program for this shell: it is a bash, or a fresh one that a command has.
func (s *PersistentShell) isFirst(st proc.Stat) bool {
	mark := s.mark.Load()
	return mark != nil && st.PPID == os.Getpid() && st.Carries(*mark)
}

// newMark gives the processes that are started from now on another mark.
func (s *PersistentShell) newMark(id string) {
	s.entry = ipc.SessionVar + "=" + id
	mark := s.entry
	s.mark.Store(&mark)
}
