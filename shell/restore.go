package shell

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/ipc"
)

// A bash that takes over gets the state of the one before by one script. If bash cannot
// read that to its end, because it gives up in the middle, ends, or hangs, another
// bash gets the state piece by piece, without the pieces to blame. Either way the new bash
// is asked what it has then, and what is missing is told: see Restart.Lost. That
// is the state from then on, so nothing is tried twice.

// Bounds of what bash may take to read a state: far more than builtins need, also beside
// a load.
const (
	restorePatience = 5 * time.Second
	restorePerMiB   = time.Second
	restoreTries    = 8 // bashes that may be lost to pieces
)

var (
	errStuck     = errors.New("bash did not come to an end with it in time")
	errGivenUp   = errors.New("bash has not read it to its end")
	errRestoring = errors.New("restoring the shell's state")
)

// startWith starts a bash with a state.
func (s *PersistentShell) startWith(ctx context.Context, state ipc.State) (*bash, error) {
	b, err := openBash(ctx, s, true)
	if err != nil {
		return nil, err
	}
	rec, err := b.readPieces(ctx, b.piecesOf(&state)...)
	if err == nil && rec.Status != 0 {
		err = errGivenUp
	}
	if err == nil {
		err = b.restored(ctx, state, rec)
	}
	if err == nil {
		return b, nil
	}
	b.discard()
	if ctx.Err() != nil {
		return nil, b.startError(fmt.Errorf("%w: %w", errRestoring, err))
	}
	s.opts.Logger.Warn("limpet: the state of the shell is restored piece by piece", "err", err)
	return s.startByPiece(ctx, state)
}

// startByPiece starts a bash with as much of a state as bash can take. A piece with
// which it ends, or hangs, is left out of the next try.
func (s *PersistentShell) startByPiece(ctx context.Context, state ipc.State) (*bash, error) {
	var bad []int // indices of pieces
	for {
		b, err := openBash(ctx, s, true)
		if err != nil {
			return nil, err
		}
		pieces := b.piecesOf(&state)
		if len(bad) >= restoreTries {
			pieces = pieces[:1] // The directory.
		}
		last, rec := 0, ipc.Record{}
		for i := 0; i < len(pieces) && err == nil; i++ {
			if slices.Contains(bad, i) {
				continue
			}
			last = i
			if rec, err = b.readPieces(ctx, pieces[i]); err == nil {
				rec, err = b.readPieces(ctx) // Behind the next prompt, which may be a command by now.
			}
		}
		if err == nil {
			err = b.restored(ctx, state, rec)
		}
		if err == nil {
			return b, nil
		}
		b.discard()
		if ctx.Err() != nil || len(bad) > restoreTries {
			return nil, b.startError(fmt.Errorf("%w: %w", errRestoring, err))
		}
		bad = append(bad, last)
	}
}

// piecesOf returns the pieces of the state, to be restored in the directory of the state
// or the nearest that is there.
func (b *bash) piecesOf(state *ipc.State) []ipc.Piece {
	if !filepath.IsAbs(state.Dir) {
		state.Dir = b.shell.Dir() // PWD was unset, or made up.
	}
	dir := b.existing(state.Dir)
	if dir != state.Dir {
		b.lostDir = state.Dir
	}
	b.names = state.Names()
	return state.Pieces(dir)
}

// readPieces has bash run the script of some pieces, or of none.
func (b *bash) readPieces(ctx context.Context, pieces ...ipc.Piece) (ipc.Record, error) {
	patience := restorePatience + restorePerMiB*time.Duration(ipc.SizeOf(pieces)>>20)
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errStuck)
	defer cancel()
	id := ipc.NewID()
	lines, err := b.files.Restore(b.names, pieces, id)
	if err != nil {
		return ipc.Record{}, err
	}
	return b.exchange(ctx, id, lines)
}

// discard closes a bash that could not take a state, and ends what the prompts and traps
// in that have started.
func (b *bash) discard() {
	tree, err := proc.Snapshot()
	b.close()
	if err != nil {
		return // There is no telling here.
	}
	for _, st := range tree.Descendants(b.id) {
		_ = proc.Signal(st.ID(), syscall.SIGKILL) // It may have ended.
	}
}

// restored takes note of what bash has of the state that it was given.
func (b *bash) restored(ctx context.Context, state ipc.State, rec ipc.Record) error {
	b.pwd, b.flags = b.trueDir(rec.Dir), rec.Flags
	if err := b.saveNow(ctx, ""); err != nil {
		return err
	}
	b.leftOut, b.missing = state.LeftOut, state.Missing(b.saved.state)
	return nil
}

// notRestored says what of a state bash was not given.
func (b *bash) notRestored() (lost []string) {
	if b.lostDir != "" {
		lost = append(lost, fmt.Sprintf("working directory %s, which is gone: now in %s", b.lostDir, b.pwd))
	}
	if len(b.leftOut) > 0 {
		lost = append(lost, strings.Join(b.leftOut, " and ")+" (the new bash would end at the next failure, too)")
	}
	if len(b.missing) > 0 {
		const most = 20
		var names []string
		for _, piece := range b.missing[:min(len(b.missing), most)] {
			names = append(names, piece.String())
		}
		text := "what bash could not take back: " + strings.Join(names, ", ")
		if more := len(b.missing) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		lost = append(lost, text)
	}
	return lost
}
