package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
)

// isElsewhere reports whether the session is on another machine.
func (f *keptFlags) isElsewhere() bool { return f.on.String() != "" }

// openElsewhere is open on the machine of --on. A session without a name ends with limpet.
func (f *keptFlags) openElsewhere(ctx context.Context, cmd *cobra.Command, flags *shellFlags, console *console) (*keptShell, error) {
	spec := &keeper.Spec{Bash: flags.bash, Login: flags.login, InitFiles: flags.initFiles}
	keepToItself() // The process that keeps the connection outlives limpet.
	h, err := program(console.notef).Dial(ctx, f.on)
	if err != nil {
		return nil, err
	}
	sh := &keptShell{flags: flags, noWait: f.noWait, id: f.id, console: console, place: h, enter: flags.dir, host: h}
	if f.name != "" {
		err = f.find(ctx, cmd, sh, spec)
	} else {
		err = sh.temporary(ctx, h, spec)
	}
	if err != nil {
		_ = h.Disconnect() // That it failed is told.
		return nil, err
	}
	return sh, nil
}

// temporary has a shell be that of a session which ends with limpet. If the connection is lost it stays, for as long as others do: what
// runs there may be worth something.
func (k *keptShell) temporary(ctx context.Context, h *host.Host, spec *keeper.Spec) error {
	kept, err := h.Temporary(ctx, host.TemporaryName("run"), spec)
	if err != nil {
		return err
	}
	info, err := kept.InfoThen(ctx)
	if err != nil {
		kept.Disconnect()
		return err
	}
	k.Kept, k.dir = kept, info.Dir
	return nil
}

// Disconnect lets go of the session, and of its machine.
func (k *keptShell) Disconnect() {
	k.asks.Close()
	k.Kept.Disconnect()
	if k.host == nil {
		return
	}
	if err := k.host.Disconnect(); err != nil {
		k.console.notef("%s", explain(err))
	}
}
