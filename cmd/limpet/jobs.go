package main

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/jobs"
)

func jobsCommand() *cobra.Command {
	var where registryFlags
	cmd := &cobra.Command{
		Use:     "jobs",
		Aliases: []string{"job"},
		Short:   "Run commands in the background, which outlive limpet",
		Long: `Jobs are commands that run in the background, also when limpet has ended. Each has
an id, which jobs start prints; its output is kept, as is how it ended. A part of the
id will do where it means one job: its beginning, as in make of job-make-x3k9q2ab,
or its end.

The jobs are in a directory, --state. One program at a time owns it, and while that
is another one (a server that uses the library, say) jobs can be looked at, but not
changed: list, log and wait always work, and poll but for what is new.

Half an hour after its end, or when 64 others have ended after it, a job is forgotten.
See limpet help exit-codes for the exit codes.`,
		Example: `  id=$(limpet jobs start -- make -j4)
  limpet jobs list
  limpet jobs log --follow "$id"
  limpet jobs wait --timeout 10m "$id" && echo fine
  limpet jobs stop "$id"`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	where.add(cmd)
	cmd.AddCommand(
		jobsStartCommand(&where), jobsListCommand(&where), jobsPollCommand(&where), jobsLogCommand(&where), jobsWaitCommand(&where),
		jobsWriteCommand(&where), jobsSubmitCommand(&where), jobsCloseCommand(&where), jobsResizeCommand(&where),
		jobsStopCommand(&where), jobsForgetCommand(&where), jobsHistoryCommand(&where), helpCommand(),
	)
	return cmd
}

// registryFlags say where the jobs are.
type registryFlags struct {
	dir     string
	console *console
}

func (f *registryFlags) add(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.dir, "state", "", "the `DIR` of the jobs (default: limpet/jobs in XDG_STATE_HOME, or in ~/.local/state)")
}

// run makes a RunE of a function that wants a context which ends with a signal.
func (f *registryFlags) run(do func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("state") {
			if f.dir == "" {
				return emptyPath(cmd, "state")
			}
			// Where there is none there are no jobs, and the first one makes it.
			if err := usable(f.dir, true, unix.X_OK); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return usagef(cmd, "--state %q: %w", f.dir, err)
			}
		}
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		f.console = newConsole()
		return do(ctx, cmd, args)
	}
}

// look opens the jobs of whoever owns them, to be looked at.
func (f *registryFlags) look(opts jobs.Options, do func(*jobs.Registry) error) error {
	opts.ReadOnly = true
	opts.Logger = f.console.logger()
	r, err := jobs.Open(f.dir, &opts)
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.Close())
}

// change opens the jobs as their owner, in turn with other commands that do so.
func (f *registryFlags) change(ctx context.Context, opts jobs.Options, do func(*jobs.Registry) error) error {
	opts.Brief = true
	opts.Logger = f.console.logger()
	if opts.MaxFinished == 0 {
		opts.MaxFinished = math.MaxInt // Who looks, or stops one, forgets none of the others.
	}
	opts.Interrupts = interrupt.New()
	stop := context.AfterFunc(ctx, func() { opts.Interrupts.Stop(context.Cause(ctx)) })
	defer stop()
	r, err := jobs.Open(f.dir, &opts)
	if err != nil {
		return cmp.Or(gotSignal(ctx), err)
	}
	return errors.Join(do(r), r.Close())
}
