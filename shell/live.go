package shell

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/saved"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
)

// Live returns what the shell has now that decides what a script means: functions, aliases, traps, options, variables and so on. It waits
// for the command that runs; ctx bounds that. Bash is asked, by its builtins: what a command has put in their place may lie. It
// is known on Linux alone, and for shells on this machine, also in a sandbox, whose files may be others; else the error says so.
func (s *PersistentShell) Live(ctx context.Context) (live command.LiveState, err error) {
	if runtime.GOOS != "linux" {
		return live, cannotTell(errNotHere)
	}
	err = s.ask(ctx, func(b *bash) error {
		_, local := s.opts.Transport.(local.Transport)
		if _, enclosed := b.conn.(transport.Enclosed); !local && !enclosed {
			return errNotHere
		}
		if err := b.exchange.Renew(); err != nil {
			return err
		}
		if err := b.saveNow(ctx, b.back, saved.Names); err != nil {
			return err
		}
		state := b.saved.state
		if len(state.Unsaved) > 0 && !slices.Equal(state.Unsaved, []string{"list of the history"}) {
			return fmt.Errorf("it has too much: %v", state.Unsaved)
		}
		live = state.Live()
		numbers, err := proc.Numbers(b.id.PID)
		if err != nil {
			return err
		}
		for _, n := range numbers {
			if n > 2 {
				live.Descriptors = append(live.Descriptors, n)
			}
		}
		live.Libraries, err = proc.Libraries(b.id.PID)
		return err
	})
	if err != nil {
		return command.LiveState{}, cannotTell(err)
	}
	return live, nil
}

func cannotTell(err error) error {
	return fmt.Errorf("shell: what the shell has cannot be told: %w", err)
}

var errNotHere = errors.New("it does not run on this machine, or this is no Linux")
