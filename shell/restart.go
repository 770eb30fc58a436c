package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/ipc"
	"github.com/limpet-sh/limpet/transport"
)

// death is what is known of a bash that ended, until a new one has taken over.
type death struct {
	reason string
	state  saved.State
	have   bool // there is a state to restore
	lost   []string
	gone   bool // no bash takes the state
	reset  bool // Reset ended it: there is nothing to tell and to restore
	asked  bool // Restore ended it: its caller is told
}

// obituary is what is known of the end of a bash besides its status.
type obituary struct {
	failure string // why it was given up
	evicted bool   // the ladder ended it, since it could not be unwound
	lost    error  // what of the transport's promises is lost; see transport.Checker
	goOn    bool   // and whether the next command may run all the same
	told    bool   // somebody was told of it
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
	case b.obituary.failure != "":
		d.reason = "bash " + b.obituary.failure + ", and was replaced"
	case b.obituary.evicted:
		d.reason = "bash could not be made to give up the command, and was replaced"
	case exit.Signal != 0:
		d.reason = fmt.Sprintf("%s by %s", what, transport.SignalName(exit.Signal))
	default:
		d.reason = fmt.Sprintf("%s with status %d", what, exit.Code)
	}
	d.state, d.have = b.saved.state, b.saved.have
	state, err := b.exchange.SavedAtExit()
	if err == nil {
		d.state, d.have = b.ofSession(state), true
		d.state.Given = b.given
	} else if missed := b.commands - b.saved.commands; missed > 0 || !d.have {
		text := fmt.Sprintf("what the last %s changed", count(max(missed, 1), "command"))
		if _, ok := errors.AsType[*ipc.DiskError](cmp.Or(b.saved.err, err)); ok {
			text += fmt.Sprintf(" (there was no room to save it in %s)", b.exchange.Path())
		}
		d.lost = append(d.lost, text)
	}
	d.state.Begin, d.state.Nameless = b.options, b.nameless
	jobs := b.jobs()
	told := b.obituary.lost != nil && b.obituary.told
	b.close()
	if b.obituary.lost != nil && !b.obituary.goOn && !told {
		s.unheard = b.obituary.lost
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

// ofSession returns what a bash has saved as it ended, without what was for its last command alone.
func (b *bash) ofSession(state saved.State) saved.State {
	call := b.current
	if call.Dir != "" && b.sameDir(state.Dir, call.Dir) {
		state = state.In(b.dir())
	} else {
		call.Dir = "" // The command went elsewhere, and stays there.
	}
	if state.InFunction && b.saved.have {
		state = state.Leave(b.saved.state) // Else IFS may come back as a function had it for itself.
	}
	return b.exchange.Ending(call, state, b.saved.state)
}

// unsavable returns what goes with bash because no state has it. Descriptors are counted where
// the system tells of them: by the exit trap, or else when the state was saved. Of scripts
// since then it errs on the side of yes.
func (b *bash) unsavable(state saved.State) []string {
	lost := slices.Clone(state.Unsaved)
	opened := b.saved.opened || b.saved.since.opened
	// One that was ended in the middle of a script has limpet's redirections open, too.
	if state.Open > 0 && b.descriptors > 0 && !b.obituary.evicted {
		opened = state.Open > b.descriptors
	}
	if opened {
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
	var state *saved.State
	if d.have {
		state = &d.state
	}
	if d.gone {
		return restart, ErrGone
	}
	b, err := startBash(ctx, s, state)
	if err != nil {
		d.gone = errors.Is(err, ErrGone)
		return restart, err
	}
	s.bash, s.died = b, nil
	if d.reset {
		return nil, nil
	}
	if d.have {
		restart.Restored = b.taken.restored()
		restart.Lost = append(restart.Lost, b.taken.notRestored(b.pwd)...)
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
