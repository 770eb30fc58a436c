package shell

import (
	"errors"
	"os"

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
	s.asks, err = askpass.Serve(askpass.Options{RuntimeDir: s.opts.RuntimeDir, Ask: s.opts.AskPassword, Shell: s.isFirst})
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // As the option says.
	}
	if err == nil {
		s.opts.Env = s.asks.Env(s.opts.Env)
	}
	return err
}

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
