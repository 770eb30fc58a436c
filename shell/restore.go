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
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/ipc"
)

// A bash that takes over is asked what it has, and gets what the state of the one before has
// otherwise, by one script. If it ends by that, or hangs, another bash gets the state piece by
// piece, without the pieces to blame. Either way the new bash is asked again what it has
// then, and what is missing is told: see Restart.Lost. That is the state from then on, so
// nothing is tried twice. All of that has a limit, behind which a bash gets the directory alone.

// restorePatience bounds what bash may take to read a state: far more than builtins need,
// also beside a load. restoreLimit bounds all that is tried with the pieces of a state, however many
// bashes are lost to them. They are variables for tests, which have less.
var (
	restorePatience = 5 * time.Second
	restoreLimit    = 15 * time.Second
)

const (
	restorePerMiB = time.Second // More of both, by the size of the state.
	restoreTries  = 8           // bashes that may be lost to pieces
)

// forSize is the time that is added to a limit for a state of this many bytes.
func forSize(bytes int) time.Duration { return restorePerMiB * time.Duration(bytes>>20) }

var (
	errStuck     = errors.New("bash did not come to an end with it in time")
	errTooLong   = errors.New("it took too long in all")
	errRestoring = errors.New("restoring the shell's state")
)

// ErrGone means that the session is gone: bash starts, but not even with the session's
// directory alone. Call [PersistentShell.Reset], which begins anew, or
// [PersistentShell.Restore]; every other call returns ErrGone until then.
var ErrGone = errors.New("the session is gone: call Reset")

// startWith starts a bash with a state.
func (s *PersistentShell) startWith(ctx context.Context, state saved.State) (*bash, error) {
	limited, cancel := context.WithTimeoutCause(ctx, restoreLimit+forSize(state.Size()), errTooLong)
	defer cancel()
	b, err := s.startGiven(limited, state.Nameless, state, (*bash).apply)
	for bad := []string(nil); err != nil; { // Pieces with which a bash has ended, or hung.
		over := limited.Err() != nil || len(bad) == restoreTries
		switch {
		case ctx.Err() != nil, !over && !errors.Is(err, errRestoring): // No bash starts at all.
			return nil, err
		case over:
			s.opts.Logger.Warn("limpet: the state of the shell is lost, but for its directory", "err", err)
			return s.startInDir(ctx, state)
		}
		s.opts.Logger.Warn("limpet: the state of the shell is restored piece by piece", "err", err)
		b, err = s.startGiven(limited, state.Nameless, state, func(b *bash, ctx context.Context, pieces []saved.Piece) (refused []saved.Piece, err error) {
			refused, last, err := b.applyEach(ctx, pieces, bad)
			bad = append(bad, last)
			return refused, err
		})
	}
	return b, nil
}

// startInDir starts a bash with nothing of a state but the directory. It has the environment of
// the first one.
func (s *PersistentShell) startInDir(ctx context.Context, state saved.State) (*bash, error) {
	state.Given = saved.Given{Env: s.opts.Env}
	b, err := s.startGiven(ctx, s.opts.Env, state, func(b *bash, ctx context.Context, pieces []saved.Piece) ([]saved.Piece, error) {
		var dir, others []saved.Piece
		for _, p := range pieces {
			if p.Plural() == saved.PieceDir {
				dir = append(dir, p)
			} else {
				others = append(others, p)
			}
		}
		refused, err := b.apply(ctx, dir)
		return append(refused, others...), err
	})
	if err != nil && ctx.Err() == nil && errors.Is(err, errRestoring) {
		s.opts.Logger.Error("limpet: no bash takes the state of the shell", "err", err)
		return nil, ErrGone
	}
	return b, err
}

// startGiven starts a bash with an environment, and gives it the pieces of a state that it does not
// have. What give returns as refused is told; after its error, which [errRestoring] marks, the
// bash is ended.
func (s *PersistentShell) startGiven(
	ctx context.Context, env []string, state saved.State, give func(*bash, context.Context, []saved.Piece) (refused []saved.Piece, err error),
) (*bash, error) {
	b, err := s.openFresh(ctx, env)
	if err != nil {
		return nil, err
	}
	b.taken.size = state.Size()
	pieces := b.piecesOf(&state)
	refused, err := give(b, ctx, pieces)
	if err == nil {
		err = b.restored(ctx, state, pieces, refused)
	}
	if err != nil {
		b.discard()
		return nil, b.startError(fmt.Errorf("%w: %w", errRestoring, err))
	}
	return b, nil
}

// openFresh starts a bash that has nothing but an environment, and asks what it has.
func (s *PersistentShell) openFresh(ctx context.Context, env []string) (*bash, error) {
	b, err := openBash(ctx, s, "/", env)
	if err != nil {
		return nil, err
	}
	if err := b.saveNow(ctx, "", saved.Nothing); err != nil {
		b.discard()
		return nil, b.startError(fmt.Errorf("asking a new bash for its state: %w", err))
	}
	if s.pristine.Dir == "" { // Nobody has saved it yet.
		s.pristine = b.saved.state
	}
	return b, nil
}

// piecesOf returns the pieces of the state, to be restored in the directory of the state
// or the nearest that is there.
func (b *bash) piecesOf(state *saved.State) []saved.Piece {
	if !filepath.IsAbs(state.Dir) {
		state.Dir = b.shell.Dir() // PWD was unset, or made up.
	}
	if dir := b.existing(state.Dir); dir != state.Dir {
		b.taken.lostDir = state.Dir
		*state = state.In(dir)
	}
	return slices.DeleteFunc(state.Pieces(b.saved.state), b.starves)
}

// starves reports whether bash could read no command any more with the piece: a limit of
// descriptors. What it reads its commands from, its report, and the files of a command are some;
// the standard input of the scripts is at a number above [ipc.InputFD].
func (b *bash) starves(p saved.Piece) bool {
	least := 16
	if b.opts.standing() {
		least += ipc.InputFD
	}
	most, limited := p.Descriptors()
	return limited && most < least
}

// readPieces has bash run the script of some pieces, or of none, and returns those that it has
// refused.
func (b *bash) readPieces(ctx context.Context, pieces ...saved.Piece) (ipc.Record, []saved.Piece, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, restorePatience+forSize(saved.SizeOf(pieces)), errStuck)
	defer cancel()
	rec, refused, err := b.exchange.Restore(ctx, pieces...)
	if err == nil {
		b.pwd = b.trueDir(rec.Dir)
	}
	return rec, refused, err
}

// apply has bash take pieces of a state, and returns those that it has refused. If bash
// gives up their script in the middle, it gets each by itself. An error means that bash has ended,
// or does not answer.
func (b *bash) apply(ctx context.Context, pieces []saved.Piece) (refused []saved.Piece, err error) {
	if len(pieces) == 0 {
		return nil, nil
	}
	rec, refused, err := b.readPieces(ctx, pieces...)
	if err != nil || rec.Status == 0 {
		return refused, err
	}
	refused = nil
	for _, p := range pieces {
		rec, not, err := b.readPieces(ctx, p)
		if err != nil {
			return refused, err
		}
		if rec.Status != 0 || len(not) > 0 {
			refused = append(refused, p)
		}
	}
	return refused, nil
}

// applyEach has bash take pieces one by one, without the bad ones, and with a prompt in between,
// which may be a command by now. It returns those that it has refused, and the last one that it was
// given: after an error that is to blame.
func (b *bash) applyEach(ctx context.Context, pieces []saved.Piece, bad []string) (refused []saved.Piece, last string, err error) {
	for _, p := range pieces {
		if slices.Contains(bad, p.String()) {
			refused = append(refused, p)
			continue
		}
		last = p.String()
		not, err := b.apply(ctx, []saved.Piece{p})
		if err == nil {
			_, _, err = b.readPieces(ctx)
		}
		if err != nil {
			return refused, last, err
		}
		refused = append(refused, not...)
	}
	return refused, last, nil
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
func (b *bash) restored(ctx context.Context, state saved.State, given, refused []saved.Piece) error {
	rec, _, err := b.readPieces(ctx)
	if err != nil {
		return err
	}
	b.monitor = rec.Has("monitor")
	if err := b.saveNow(ctx, "", saved.Nothing); err != nil {
		return err
	}
	b.options, b.given = slices.Clone(state.Begin), state.Given
	b.taken.leftOut, b.taken.missing = state.LeftOut, state.Missing(b.saved.state)
	b.taken.kinds = []string{saved.PieceDir} // Bash may have been there from the start.
	lost := append(refused, b.taken.missing...)
	for _, p := range given {
		name := p.Plural()
		has := slices.ContainsFunc(lost, func(l saved.Piece) bool { return l.String() == p.String() })
		if name != "" && !has && !slices.Contains(b.taken.kinds, name) {
			b.taken.kinds = append(b.taken.kinds, name)
		}
	}
	return nil
}

// restoration is what became of a state that a bash was given.
type restoration struct {
	size    int           // in bytes
	kinds   []string      // that bash has taken
	lostDir string        // where it should be, but cannot
	leftOut []string      // options that it was not given
	missing []saved.Piece // that it could not be given
}

// restored names the kinds of what bash has taken.
func (r *restoration) restored() []string {
	return slices.DeleteFunc(slices.Clone(saved.Kinds), func(kind string) bool {
		return !slices.Contains(r.kinds, kind) || r.lostDir != "" && kind == saved.PieceDir
	})
}

// notRestored says what bash, which is in the directory dir, was not given.
func (r *restoration) notRestored(dir string) (lost []string) {
	if r.lostDir != "" {
		lost = append(lost, fmt.Sprintf("working directory %s, which is gone: now in %s", r.lostDir, dir))
	}
	if len(r.leftOut) > 0 {
		lost = append(lost, strings.Join(r.leftOut, " and ")+" (the new bash would end at the next failure, too)")
	}
	if len(r.missing) > 0 {
		const most = 20
		var names []string
		for _, piece := range r.missing[:min(len(r.missing), most)] {
			names = append(names, piece.String())
		}
		text := "what bash could not take back: " + strings.Join(names, ", ")
		if more := len(r.missing) - most; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		lost = append(lost, text)
	}
	return lost
}
