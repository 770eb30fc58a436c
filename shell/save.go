package shell

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/ipc"
)

// savedState is the last state that was saved, and what it costs.
type savedState struct {
	state    ipc.State
	have     bool
	commands int // that had run when it was saved
	when     time.Time
	cost     time.Duration
	opened   bool // descriptors were open that commands had opened
	limited  bool // limits were not those of the start
}

// saver saves the state of a shell when it has been idle for a moment, so that
// it costs no caller anything. Its timer and its goroutine end with close.
type saver struct {
	s     *PersistentShell
	mu    sync.Mutex
	timer *time.Timer
	done  bool
	busy  sync.WaitGroup
}

// The state is saved at the latest this long after a change, even when command
// follows command without a pause; but saving takes no more than a twentieth
// of the time.
const (
	saveAtLatest = 250 * time.Millisecond
	saveShare    = 20
)

// overdue reports that command followed command for too long.
func (b *bash) overdue() bool {
	age := time.Since(b.saved.when)
	return age > saveAtLatest && age > saveShare*b.saved.cost
}

func newSaver(s *PersistentShell) *saver { return &saver{s: s} }

// soon has the state saved after the delay. The caller has the turn and is
// about to give it away.
func (v *saver) soon(b *bash) {
	if b == nil || b.saved.have && b.saved.commands == b.commands {
		return
	}
	delay := v.s.opts.SaveDelay
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.done:
	case v.timer == nil:
		v.timer = time.AfterFunc(delay, v.save)
	default:
		v.timer.Reset(delay)
	}
}

// save takes the turn if nobody has it.
func (v *saver) save() {
	v.mu.Lock()
	if v.done {
		v.mu.Unlock()
		return
	}
	v.busy.Add(1)
	v.mu.Unlock()
	defer v.busy.Done()
	select {
	case <-v.s.turn:
	default:
		return // A command runs; it asks again when it ends.
	}
	if v.s.bash != nil && !v.s.bash.dead() {
		v.s.bash.save(context.Background())
		v.s.bash.look()
	}
	v.s.turn <- struct{}{}
}

// close ends the timer and waits for a save under way. It is safe to call
// twice.
func (v *saver) close() {
	v.mu.Lock()
	v.done = true
	if v.timer != nil {
		v.timer.Stop()
	}
	v.mu.Unlock()
	v.busy.Wait()
}

// saveTimeout bounds a save: it is builtins only.
const saveTimeout = 5 * time.Second

// save has bash write its state down. When that fails the last state stays.
func (b *bash) save(ctx context.Context) {
	if b.saved.have && b.saved.commands == b.commands {
		return
	}
	if b.renewFiles() == nil {
		b.trySave(ctx, b.back)
	}
}

// trySave saves the state, or says that it could not.
func (b *bash) trySave(ctx context.Context, back string) {
	if err := b.saveNow(ctx, back); err != nil {
		b.opts.Logger.Warn("limpet: the shell's state was not saved", "err", err)
	}
}

// saveNow saves the state, of bash in the directory back if that is not empty.
func (b *bash) saveNow(ctx context.Context, back string) error {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	began := time.Now()
	id := ipc.NewID()
	rec, err := b.exchange(ctx, id, b.files.SaveLines(b.names, id, back))
	if err != nil {
		return err
	}
	state, err := b.files.Saved(id, b.seal)
	if err != nil {
		return err
	}
	if back != "" && b.sameDir(rec.Dir, back) {
		b.pwd, b.back = b.back, ""
	}
	state.Dir = b.dir()
	b.unsaved = ""
	descriptors, err := proc.Descriptors(b.id.PID)
	b.saved = savedState{
		state: state, have: true, commands: b.commands, when: time.Now(), cost: time.Since(began),
		opened: err != nil || descriptors > b.descriptors, limited: proc.Limits(b.id.PID) != b.limits,
	}
	b.setTrap(ctx)
	return nil
}

// setTrap puts our exit trap back after a script that dealt with traps, unless
// the user has one now.
func (b *bash) setTrap(ctx context.Context) {
	if b.saved.state.ExitTrap {
		b.trapSet = false // It has replaced ours.
		return
	}
	if b.trapSet {
		return
	}
	id := ipc.NewID()
	if _, err := b.exchange(ctx, id, b.files.ExitTrap(b.seal)+"; "+b.files.Report(b.names, id)+"\n"); err == nil {
		b.trapSet = true
	}
}

// mayEnd are words of scripts that may end bash in a way that no exit trap
// sees, or that replace the trap.
var mayEnd = []string{"kill", "exec", "exit", "trap", "ulimit"}

// saveFirst saves the state before a script that may end bash, when the last
// command was too short ago for it to have been saved, and once in a while
// when there is no pause between commands. The word may also stand in a function
// that one of the last scripts defined.
func (b *bash) saveFirst(ctx context.Context, script string) {
	// Under job control a bash that is interrupted runs no exit trap.
	if b.overdue() || mentions(b.unsaved+script, mayEnd...) || strings.Contains(b.flags, "m") {
		b.save(ctx)
	}
}
