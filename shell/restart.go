package shell

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// death is what is known of a bash that ended, until a new one has taken over.
type death struct {
	reason string
	state  ipc.State
	have   bool // there is a state to restore
	lost   []string
	reset  bool // Reset ended it: there is nothing to tell and to restore
	asked  bool // Restore ended it: its caller is told
}

// ensure makes sure that there is a living bash before a command runs. It
// returns what there is to tell if it had to start one.
func (s *PersistentShell) ensure(ctx context.Context) (*command.Restart, error) {
	if s.bash != nil && !s.bash.dead() {
		return nil, nil
	}
	if s.bash != nil {
		s.bury("bash ended while it was idle")
	}
	return s.resurrect(ctx)
}

// replace starts a new bash after the command that ended the old one, so that
// its Result can say what came of it. The command's ctx may be over: the start
// has its own bound.
func (s *PersistentShell) replace(what string, before *command.Restart) *command.Restart {
	s.bury(what)
	return s.goOn(before)
}

// goOn starts a bash in the place of one that is buried, or gone with its command.
func (s *PersistentShell) goOn(before *command.Restart) *command.Restart {
	restart, err := s.resurrect(context.Background())
	if err != nil {
		restart.Err = err
		s.opts.Logger.Error("limpet: no new bash", "err", err)
	}
	return follows(before, restart)
}

// follows joins what there is to tell of two restarts, either of which may be nil.
func follows(before, restart *command.Restart) *command.Restart {
	switch {
	case before == nil:
		return restart
	case restart == nil:
		return before
	}
	restart.Reason = before.Reason + ", and " + restart.Reason
	for _, lost := range before.Lost {
		if !slices.Contains(restart.Lost, lost) {
			restart.Lost = append(restart.Lost, lost)
		}
	}
	return restart
}

// bury takes leave of a bash that ended: how it did, what it saved, what is
// gone with it.
func (s *PersistentShell) bury(what string) {
	b := s.bash
	<-b.conn.Done()
	exit := b.conn.Exit()
	d := &death{}
	switch {
	case b.failure != "":
		d.reason = "bash " + b.failure + ", and was replaced"
	case b.evicted:
		d.reason = "bash could not be made to give up the command, and was replaced"
	case exit.Signal != 0:
		d.reason = fmt.Sprintf("%s by %s", what, transport.SignalName(exit.Signal))
	default:
		d.reason = fmt.Sprintf("%s with status %d", what, exit.Code)
	}
	d.state, d.have = b.saved.state, b.saved.have
	if state, err := b.files.SavedAtExit(b.seal); err == nil {
		if b.away != "" && b.sameDir(state.Dir, b.away) {
			state.Dir = b.dir() // The request's directory was for this command alone.
		}
		if state.InFunction && d.have {
			state = state.Leave(b.saved.state) // Else IFS may come back as a function had it for itself.
		}
		d.state, d.have = state, true
	} else if missed := b.commands - b.saved.commands; missed > 0 || !d.have {
		d.lost = append(d.lost, fmt.Sprintf("what the last %s changed", count(max(missed, 1), "command")))
	}
	jobs := b.jobs()
	told := b.lost != nil && b.told
	b.close()
	if b.lost != nil && !b.goOn && !told {
		s.unheard = b.lost
	}
	for _, job := range jobs {
		id := proc.ID{PID: job.PID, Start: job.Start}
		if st, err := proc.Read(id.PID); err != nil || st.ID() != id || st.Zombie() {
			d.lost = append(d.lost, fmt.Sprintf("job %s, which ended with bash", job)) // As in a sandbox.
			continue
		}
		d.lost = append(d.lost, fmt.Sprintf("job %s, which runs on but is no job of the new bash", job))
		s.orphans = append(s.orphans, id)
	}
	d.lost = append(d.lost, b.unsavable(d.state)...)
	if c, ok := b.conn.(transport.Enclosed); ok && len(c.Private()) > 0 {
		d.lost = append(d.lost, "the files in "+strings.Join(c.Private(), ", "))
	}
	s.bash, s.died = nil, d
}

// unsavable returns what goes with bash because no state has it. It errs on the side of
// yes: nobody has looked at descriptors and limits since the state was saved.
func (b *bash) unsavable(state ipc.State) []string {
	lost := slices.Clone(state.Unsaved)
	if !b.saved.have || b.saved.limited || ipc.HasWord(b.unsaved, "ulimit") || state.Mentions("ulimit") {
		lost = append(lost, "limits (ulimit)")
	}
	if !b.saved.have || b.saved.opened || state.MayOpen(b.unsaved) {
		lost = append(lost, "open descriptors and coprocesses")
	}
	return lost
}

func count(n int, noun string) string {
	if n == 1 {
		return noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// resurrect starts a bash with the state of the one that died. The Restart is
// never nil.
func (s *PersistentShell) resurrect(ctx context.Context) (*command.Restart, error) {
	d := s.died
	restart := &command.Restart{Reason: d.reason, Lost: slices.Clone(d.lost)}
	var state *ipc.State
	if d.have {
		state = &d.state
	}
	b, err := startBash(ctx, s, state)
	if err != nil {
		return restart, err
	}
	s.bash, s.died = b, nil
	if d.reset {
		return nil, nil
	}
	if d.have {
		restart.Restored = []string{"working directory", "variables", "functions", "aliases", "options", "traps", "umask"}
		if b.lostDir != "" {
			restart.Restored = restart.Restored[1:]
		}
		restart.Lost = append(restart.Lost, b.notRestored()...)
	}
	if d.asked {
		return restart, nil
	}
	s.opts.Logger.Info("limpet: bash was replaced", "restart", restart.String())
	if hook := s.opts.Hooks.Restarted; hook != nil {
		hook(restart)
	}
	return restart, nil
}

// existing returns the directory, or the nearest above it that is there.
func (b *bash) existing(dir string) string {
	const longest = 4096 // PATH_MAX: no path that is longer can be opened. PWD may be made up.
	if len(dir) >= longest {
		return "/"
	}
	for b.checkDir(dir) != nil && dir != "/" {
		dir = filepath.Dir(dir)
	}
	return dir
}

// renewFiles makes the session's files anew if somebody deleted them. The
// record is polled for from then on, until there is a new bash. If there is
// something else in their place, the error is [ipc.ErrReplaced].
func (b *bash) renewFiles() error {
	switch b.files.Damage() {
	case ipc.None:
		return nil
	case ipc.Replaced:
		return ipc.ErrReplaced
	}
	b.renewals++
	// The lock first: a directory without one is swept by other programs.
	err := b.shell.program.Ensure()
	if err == nil {
		err = b.files.Renew()
	}
	b.opts.Logger.Warn("limpet: the runtime directory was deleted under a live session", "recreated", err == nil)
	if err != nil {
		return err
	}
	if b.watch != nil && b.watch.Err == nil {
		// Bash writes to a file that no directory has any more.
		b.watch.Err = ipc.ErrDeleted
	}
	return nil
}
