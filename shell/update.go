package shell

import (
	"context"
	"slices"

	"github.com/limpet-sh/limpet/internal/saved"
)

// updateEnv has bash take over variables of whoever asks: see command.Request.UpdateEnv. Bash is asked
// only about those that limpet has not set so already, and not in the command's own script: so it is known
// what became of each before the command runs, which may end bash. What cannot be taken over is tried
// again by the next request.
func (b *bash) updateEnv(entries []string) {
	if len(entries) > 0 && b.opts.UpdateEnv != nil {
		entries = b.opts.UpdateEnv(entries)
	}
	var pieces []saved.Piece
	var wanted []string
	for _, entry := range entries {
		if was := b.given.Last(saved.NameOf(entry)); was != entry {
			pieces, wanted = append(pieces, saved.Update(was, entry)), append(wanted, entry)
		}
	}
	if len(pieces) == 0 || b.exchange.Renew() != nil { // The command meets the error, too.
		return
	}
	b.resume()
	// A caller that gives up must not leave it half done: it has a limit of its own.
	rec, refused, err := b.readPieces(context.Background(), pieces...)
	if err != nil || rec.Status != 0 {
		b.opts.Logger.Warn("limpet: the environment of a caller was not taken over", "status", rec.Status, "err", err)
		return
	}
	var set []string
	for i, piece := range pieces {
		if !slices.ContainsFunc(refused, func(p saved.Piece) bool { return p.String() == piece.String() }) {
			set = append(set, wanted[i])
		}
	}
	if len(set) > 0 {
		b.given, b.saved.stale = b.given.With(set), true
	}
}
