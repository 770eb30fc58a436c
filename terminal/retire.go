package terminal

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// mostInMemory is how much output of programs that have ended is in memory: of more, the
// oldest leaves before its grace is over.
const mostInMemory = 64 << 20

// retireLater lets the output of a program that has ended leave memory, after the grace.
func (t *Terminal) retireLater(p *program) {
	r := t.r
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return // Close does it.
	}
	p.retirement = time.AfterFunc(r.opts.Grace, t.retire)
	r.ended = append(r.ended, t)
	var early []*Terminal
	sum := int64(0)
	for i := len(r.ended) - 1; i >= 0; i-- {
		if sum += r.ended[i].kept(); sum > mostInMemory && i < len(r.ended)-1 {
			early = slices.Clone(r.ended[:i+1])
			break
		}
	}
	r.mu.Unlock()
	for _, one := range early {
		one.retire()
	}
}

// kept is how much of the output is in memory.
func (t *Terminal) kept() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.prog == nil {
		return 0
	}
	start, end := t.prog.out.bounds()
	return end - start
}

// retire lets the output leave memory. Who has the terminal, or asks for it, reads it from
// the log. One that could not be written down stays, and tries again after another grace.
func (t *Terminal) retire() {
	r := t.r
	t.mu.Lock()
	p := t.prog
	t.mu.Unlock()
	if p == nil {
		return
	}
	if err := t.save(p); err != nil {
		r.mu.Lock()
		closed := r.closed
		if !closed {
			p.retirement.Reset(r.opts.Grace)
		}
		r.mu.Unlock()
		if !closed {
			return
		}
		r.opts.Logger.Warn("limpet: what a terminal has shown is lost", "id", t.id, "err", err)
	}
	t.mu.Lock()
	t.prog = nil
	t.mu.Unlock()
	r.mu.Lock()
	delete(r.terminals, t.id)
	r.ended = slices.DeleteFunc(r.ended, func(one *Terminal) bool { return one == t })
	if p.retirement != nil {
		p.retirement.Stop()
	}
	r.retired++
	due := r.retired > r.opts.KeepEnded/4 && !r.closed
	if due {
		r.retired = 0
	}
	r.mu.Unlock()
	p.release()
	if due {
		r.prune()
	}
}

// Forget removes what is written down of a terminal whose program has ended. The error is
// ErrRunning if it has not.
func (r *Registry) Forget(id string) error {
	const op = "forget"
	t, err := r.Get(id)
	if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrClosed) && ValidID(id) { // Its record is damaged.
		if err := r.remove(id); err != nil {
			return &Error{Op: op, ID: id, Err: err}
		}
		return nil
	}
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
	if p := t.program(); p != nil {
		p.saved.Store(true) // What could not be written is not wanted any more.
	}
	t.retire()
	if err := r.remove(id); err != nil {
		return &Error{Op: op, ID: id, Err: err}
	}
	return nil
}

// leftFor is how old something must be to be removed that seems to be nobody's: its
// program may be just about to lock it, or to give it its name.
const leftFor = time.Minute

// prune forgets what ended too long ago, and more than may be kept, and what programs have
// left that are gone. Terminals whose output is in memory stay: in that of another program
// it may be for a grace.
func (r *Registry) prune() {
	infos, err := r.List()
	if err != nil {
		return // The registry is closed, or its directory gone.
	}
	known := make(map[string]bool, len(infos))
	for _, i := range infos {
		known[i.ID] = true
	}
	over := slices.DeleteFunc(infos, func(i Info) bool {
		if !i.State.Ended() || r.own(i.ID) != nil {
			return true
		}
		if i.Owner == r.owner || time.Since(i.Ended) > r.opts.Grace {
			return false
		}
		alive, err := r.alive(i.Owner)
		return alive || err != nil
	})
	slices.SortFunc(over, func(a, b Info) int { return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.ID, b.ID)) })
	for i, one := range over {
		if len(over)-i <= r.opts.KeepEnded && time.Since(one.Ended) < r.opts.KeepFor {
			continue
		}
		if err := r.remove(one.ID); err != nil {
			r.opts.Logger.Warn("limpet: a terminal cannot be forgotten", "id", one.ID, "err", err)
		}
	}
	r.sweep(known)
}

// sweep removes what programs have left that were killed: their locks, files that were
// just being written, and logs without a record. A record that cannot be read goes with its
// age.
func (r *Registry) sweep(known map[string]bool) {
	entries, _ := os.ReadDir(r.dir) // As above.
	for _, entry := range entries {
		name := entry.Name()
		info, err := entry.Info()
		if err != nil || time.Since(info.ModTime()) < leftFor {
			continue
		}
		id, ext := strings.TrimSuffix(name, filepath.Ext(name)), filepath.Ext(name)
		switch {
		case ext == lockExt:
			_, _ = r.alive(id) // It removes the lock of one that is not.
		case strings.HasPrefix(name, "."+idPrefix): // As renameio names them.
			_ = os.Remove(filepath.Join(r.dir, name)) // Best effort: the next one tries again.
		case ValidID(id) && !known[id] && (ext == logExt || ext == replayExt || ext == recordExt && time.Since(info.ModTime()) > r.opts.KeepFor):
			_ = os.Remove(filepath.Join(r.dir, name)) // As above.
		}
	}
}
