package shell

import (
	"context"
	"sync"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/ipc"
)

// savedState is the last state that was saved, and what it costs.
type savedState struct {
	state    saved.State
	have     bool
	commands int  // that had run when it was saved
	stale    bool // variables were updated since
	when     time.Time
	cost     time.Duration
	opened   bool // descriptors were open that commands had opened

	err       error           // why the last save failed
	since     since           // what commands did after it
	functions *script.Library // of the state; nil: not read yet
}

// isSaved reports whether the saved state is that of bash.
func (b *bash) isSaved() bool {
	return b.saved.have && b.saved.commands == b.commands && !b.saved.stale
}

// saver saves the state of a shell when it has been idle for a moment, so that
// it costs no caller anything. It keeps bash awake where TMOUT would end it. Its timer and its goroutine end with close.
type saver struct {
	s     *PersistentShell
	mu    sync.Mutex
	timer *time.Timer
	done  bool
	busy  sync.WaitGroup

	due time.Time // when the state is to be saved: until then bash is only kept awake. It belongs to the turn.
}

// The state is saved at the latest this long after a change, even when command
// follows command without a pause; but saving takes no more than a twentieth
// of the time.
const (
	saveAtLatest = 250 * time.Millisecond
	saveShare    = 20
	costly       = 20 * time.Millisecond // what a save takes at least to be put off
)

// wakeEvery returns how often bash has to be given a line while it is idle: TMOUT would end it.
// Scripts see TMOUT as they have set it. 0 is never.
func (b *bash) wakeEvery() time.Duration { return b.saved.state.LogoutAfter / 3 }

// wakeAtLeast is how often bash is given a line while a save is put off, by which alone it would
// be known that a command has set TMOUT: it is at least a second.
const wakeAtLeast = time.Second / 3

// wake gives bash a line of nothing.
func (b *bash) wake(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := b.exchange.Ping(ctx); err != nil {
		b.opts.Logger.Warn("limpet: bash does not answer while it is idle", "err", err)
	}
}

// overdue reports that command followed command for too long.
func (b *bash) overdue() bool {
	age := time.Since(b.saved.when)
	return age > saveAtLatest && age > saveShare*b.saved.cost
}

func newSaver(s *PersistentShell) *saver { return &saver{s: s} }

// soon has the state saved after the delay. The caller has the turn and is
// about to give it away.
func (v *saver) soon(b *bash) {
	if b == nil {
		return
	}
	if b.isSaved() {
		if every := b.wakeEvery(); every > 0 {
			v.after(every)
		}
		return
	}
	delay := v.s.opts.SaveDelay
	if b.saved.cost > costly {
		delay = max(delay, saveShare*b.saved.cost) // The next command would wait for it.
	}
	v.due = time.Now().Add(delay)
	v.after(min(delay, wakeAtLeast))
}

// after has save called after the delay.
func (v *saver) after(delay time.Duration) {
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
	if b := v.s.bash; b != nil && !b.dead() {
		again := time.Until(v.due)
		if again <= 0 {
			b.save(context.Background())
			b.look()
			again = b.wakeEvery()
		} else {
			again = min(again, wakeAtLeast)
		}
		if again > 0 {
			b.wake(context.Background())
			v.after(again)
		}
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

// saveTimeout bounds a save, which is builtins only, and has more time for a large state.
const saveTimeout = 5 * time.Second

// save has bash write its state down. When that fails the last state stays.
func (b *bash) save(ctx context.Context) {
	if b.isSaved() {
		return
	}
	if b.exchange.Renew() == nil {
		b.trySave(ctx, b.back)
	}
}

// trySave saves the state, or says that it could not.
func (b *bash) trySave(ctx context.Context, back string) {
	if err := b.saveNow(ctx, back, saved.Nothing); err != nil {
		b.opts.Logger.Warn("limpet: the shell's state was not saved", "err", err)
	}
}

// saveNow saves the state, of bash in the directory back if that is not empty, and what else is asked for.
func (b *bash) saveNow(ctx context.Context, back string, more saved.More) (err error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout+forSize(max(b.taken.size, b.saved.state.Size())))
	defer cancel()
	began := time.Now()
	defer func() { // One that fails counts for overdue as one that goes well.
		b.saved.err, b.saved.when, b.saved.cost = err, time.Now(), time.Since(began)
	}()
	b.resume()
	state, rec, err := b.exchange.Save(ctx, back, more)
	if err != nil {
		return err
	}
	if back != "" && b.sameDir(rec.Dir, back) {
		b.pwd, b.back, b.current = b.back, "", ipc.Call{}
	}
	state.Dir, state.Nameless, state.Given = b.dir(), b.nameless, b.given
	descriptors, err := proc.Descriptors(b.id.PID)
	opened := descriptors > b.descriptors
	if err != nil || b.descriptors == 0 { // There is no telling here, but by what has run.
		opened = b.saved.opened || b.saved.since.opened
	}
	b.saved = savedState{
		state: state, have: true, commands: b.commands,
		opened: opened,
	}
	if b.pristine && b.commands == 0 {
		b.shell.pristine, b.pristine = state, false
	}
	return nil
}
