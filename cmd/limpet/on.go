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
	sh, err := f.dial(ctx, flags, console)
	if err != nil {
		return nil, err
	}
	spec := specThere(flags)
	if f.name != "" {
		err = f.find(ctx, cmd, sh, spec)
	} else {
		err = sh.temporary(ctx, sh.host, spec)
	}
	if err != nil {
		_ = sh.host.Disconnect() // That it failed is told.
		return nil, err
	}
	return sh, nil
}

// openLater is openElsewhere, but that the first script opens the session, in the request that asks for it. Do returns an unopenedError if the
// session cannot be opened. The directory is not known before the first script has run. Only says that there is no second script.
func (f *keptFlags) openLater(ctx context.Context, flags *shellFlags, console *console, only bool) (*keptShell, error) {
	sh, err := f.dial(ctx, flags, console)
	if err != nil {
		return nil, err
	}
	spec := specThere(flags)
	if f.existing {
		spec, sh.existing = nil, true
	}
	sh.unopened.Store(true)
	if f.name == "" {
		sh.Kept = sh.host.Later(ctx, host.TemporaryName("run"), spec, host.Later{Temporary: true, Only: only, Opened: func(context.Context, *keeper.Kept) {
			sh.unopened.Store(false)
		}})
		return sh, nil
	}
	sh.Kept = sh.host.Later(ctx, f.name, spec, host.Later{Opened: func(ctx context.Context, k *keeper.Kept) {
		sh.unopened.Store(false)
		if k.Made {
			info, _ := k.InfoThen(ctx) // Without it the directory is not told.
			tellNew(k, info.Dir, console)
		}
	}})
	return sh, nil
}

// dial reaches the machine of --on. The shell has no session yet.
func (f *keptFlags) dial(ctx context.Context, flags *shellFlags, console *console) (*keptShell, error) {
	keepToItself() // The process that keeps the connection outlives limpet.
	h, err := program(console.notef).Dial(ctx, f.on)
	if err != nil {
		return nil, err
	}
	return &keptShell{flags: flags, caller: f.caller(), noWait: f.noWait, id: f.id, console: console, place: h, enter: flags.dir, host: h, stays: f.name != "", flagOn: " --on " + quoted([]string{f.on.String()})}, nil
}

// specThere says how a session is made on another machine.
func specThere(flags *shellFlags) *keeper.Spec {
	return &keeper.Spec{Bash: flags.bash, Login: flags.login, InitFiles: flags.initFiles}
}

// unopenedError is the error of a script whose session could not be opened.
type unopenedError struct{ error }

func (e *unopenedError) Unwrap() error { return e.error }

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
