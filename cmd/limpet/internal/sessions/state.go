package sessions

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/internal/keeper"
)

// with does something with the session that an argument names, wholly.
func (p Program) with(cmd *cobra.Command, on On, said string, do func(ctx context.Context, k *keeper.Kept) error) error {
	ctx, stop := p.Until(cmd.Context())
	defer stop()
	r, leave, err := p.Place(ctx, on)
	if err != nil {
		return err
	}
	defer leave()
	one, err := find(ctx, cmd, r, on, said, true)
	if err != nil {
		return err
	}
	k, err := r.Session(ctx, one.Record.Name, nil)
	if err != nil {
		return err
	}
	defer k.Disconnect()
	return do(ctx, k)
}

func interruptCommand(p Program) *cobra.Command {
	var on On
	cmd := &cobra.Command{
		Use:   "interrupt name",
		Short: "Stop what runs in a session",
		Long: `Interrupt stops the command that runs in a session, as Ctrl-C does, and does not wait for its
end. The session, its jobs and its terminals stay.`,
		Example: "  limpet session interrupt build",
		Args:    wantsNames(1, 1, "wants the name of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd, on, args[0], func(ctx context.Context, k *keeper.Kept) error {
				ran, err := k.Interrupt(ctx)
				if err == nil && !ran {
					p.Note("no command runs in session %q", k.Name())
				}
				return err
			})
		},
	}
	addOn(cmd, &on)
	return cmd
}

func forkCommand(p Program) *cobra.Command {
	var on On
	cmd := &cobra.Command{
		Use:   "fork name new",
		Short: "Make a session that begins as another one is",
		Long: `Fork makes a session of a new name, with the directory, variables, functions, aliases, options,
traps and umask that the shell of another one has now. From then on they are separate. Jobs, terminals,
background processes and checkpoints are not forked. It waits for the command that runs. The new
session says from which one it came: see limpet session list and info.`,
		Example: `  limpet session fork build try
  limpet run -s try './configure --with-ssl && make'`,
		Args: wantsNames(2, 2, "wants the name of a session, and one for the new session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			name := nameHere(args[1])
			return p.with(cmd, on, args[0], func(ctx context.Context, k *keeper.Kept) error {
				fork, err := k.Fork(ctx, name)
				if err != nil {
					return err
				}
				if fork, ok := fork.(*keeper.Kept); ok {
					defer fork.Disconnect()
				}
				info, err := fork.Info(ctx)
				if err == nil {
					p.Note("session %q is new, in %s", name, info.Dir)
				}
				return err
			})
		},
	}
	addOn(cmd, &on)
	return cmd
}

func checkpointCommand(p Program) *cobra.Command {
	var on On
	cmd := &cobra.Command{
		Use:   "checkpoint name checkpoint",
		Short: "Remember the state of a session's shell",
		Long: `Checkpoint keeps the state that a session's shell has now under a name of its own, for
rollback: directory, variables, functions, aliases, options, traps and umask. Files are not a part
of it. It waits for the command that runs, and lasts as long as the session.`,
		Example: "  limpet session checkpoint build clean",
		Args:    wantsCheckpoint("wants the name of a session, and one for the checkpoint"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd, on, args[0], func(ctx context.Context, k *keeper.Kept) error { return k.Checkpoint(ctx, args[1]) })
		},
	}
	addOn(cmd, &on)
	return cmd
}

func rollbackCommand(p Program) *cobra.Command {
	var on On
	cmd := &cobra.Command{
		Use:   "rollback name checkpoint",
		Short: "Bring the shell of a session back to a checkpoint",
		Long: `Rollback brings a session's shell back to the state that it had at a checkpoint, which
stays. Files are as they are, jobs and terminals run on. What is not as it was is said. It waits for
the command that runs.`,
		Example: "  limpet session rollback build clean",
		Args:    wantsCheckpoint("wants the name of a session, and that of a checkpoint; limpet session info has those that there are"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd, on, args[0], func(ctx context.Context, k *keeper.Kept) error {
				restart, err := k.Rollback(ctx, args[1])
				if err == nil && restart != nil && len(restart.Lost) > 0 {
					p.Note("%s", fmt.Sprint(restart))
				}
				return err
			})
		},
	}
	addOn(cmd, &on)
	return cmd
}

func resetCommand(p Program) *cobra.Command {
	var on On
	cmd := &cobra.Command{
		Use:   "reset name",
		Short: "Begin a session's shell anew",
		Long: `Reset brings a session's shell back to the state after its start, and ends what runs in its
background. Jobs, terminals and checkpoints stay. It waits for the command that runs.`,
		Example: "  limpet session reset build",
		Args:    wantsNames(1, 1, "wants the name of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.with(cmd, on, args[0], func(ctx context.Context, k *keeper.Kept) error { return k.Reset(ctx) })
		},
	}
	addOn(cmd, &on)
	return cmd
}
