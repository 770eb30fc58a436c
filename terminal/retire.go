package terminal

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"time"
)

// retireLater lets the output of a program that has ended leave memory, after the grace.
func (t *Terminal) retireLater(p *program) {
	r := t.r
	r.mu.Lock()
	r.ended++
	due := r.ended > r.opts.KeepEnded/4
	if due {
		r.ended = 0
	}
	if !r.closed {
		p.retirement = time.AfterFunc(r.opts.Grace, t.retire)
	}
	r.mu.Unlock()
	if due {
		r.prune()
	}
}

// retire lets the output leave memory. Who has the terminal, or asks for it, reads it from
// the log.
func (t *Terminal) retire() {
	t.mu.Lock()
	p := t.prog
	t.prog = nil
	t.mu.Unlock()
	t.r.mu.Lock()
	delete(t.r.terminals, t.id)
	if p != nil && p.retirement != nil {
		p.retirement.Stop()
	}
	t.r.mu.Unlock()
	if p != nil {
		p.release()
	}
}

// Forget removes what is written down of a terminal whose program has ended. The error is
// ErrRunning if it has not.
func (r *Registry) Forget(id string) error {
	const op = "forget"
	t, err := r.Get(id)
	if err != nil {
		return err
	}
	if !t.Info().State.Ended() {
		return &Error{Op: op, ID: id, Err: ErrRunning, Remedy: "close it first"}
	}
	select {
	case <-t.ended:
	case <-r.life.Done():
		return &Error{Op: op, ID: id, Err: errClosed}
	}
	t.retire()
	if err := r.remove(id); err != nil {
		return &Error{Op: op, ID: id, Err: err}
	}
	return nil
}

// unlockedFor is how old a lock must be to be removed that nobody holds: its program may
// be just about to lock it.
const unlockedFor = time.Minute

// prune forgets what ended too long ago, and more than may be kept, and what programs have
// left that are gone. Terminals whose output is in memory stay.
func (r *Registry) prune() {
	infos, err := r.List()
	if err != nil {
		return // The registry is closed, or its directory gone.
	}
	over := slices.DeleteFunc(infos, func(i Info) bool { return !i.State.Ended() || r.own(i.ID) != nil })
	slices.SortFunc(over, func(a, b Info) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.ID, b.ID)) })
	for i, one := range over {
		if len(over)-i <= r.opts.KeepEnded && time.Since(one.Ended) < r.opts.KeepFor {
			continue
		}
		if err := r.remove(one.ID); err != nil {
			r.opts.Logger.Warn("limpet: a terminal cannot be forgotten", "id", one.ID, "err", err)
		}
	}
	entries, _ := os.ReadDir(r.dir) // As above.
	for _, entry := range entries {
		info, err := entry.Info()
		if owner, ok := strings.CutSuffix(entry.Name(), lockExt); ok && err == nil && time.Since(info.ModTime()) > unlockedFor {
			r.alive(owner) // It removes the lock of one that is not.
		}
	}
}
