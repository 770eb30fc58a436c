package shell

import (
	"context"

	"github.com/limpet-sh/limpet/command"
)

// awaitSubstitutions waits for the process substitutions among the processes that the command
// has left running, and returns the others and those that still run.
func (b *bash) awaitSubstitutions(ctx context.Context, r *running, left []command.Process) []command.Process {
	if t := r.place.traits; !t.OutputSubstitution && !t.Unknown {
		return left
	}
	left = r.monitor.AwaitSubstitutions(ctx, left, b.leftover)
	b.forgetEnded(0)
	return left
}
