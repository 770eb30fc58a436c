package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/terminal"
)

func termCommand() *cobra.Command {
	var where termFlags
	cmd := &cobra.Command{
		Use:     "term",
		Aliases: []string{"terminal", "terminals"},
		Short:   "Run interactive programs on terminals of their own",
		Long: `A terminal is an interactive program (ssh, psql, vim, a REPL, another agent) that
runs on a terminal of its own, in the background. It outlives limpet and whoever looks
at it: type keys into it, read its screen, attach to it and detach again. Each has an
id, which term start prints. A part of the id will do where it means one terminal:
its beginning, as in psql of term-psql-x3k9q2ab, or its end.

With --session NAME they are those of a session that is kept (see limpet help session): a
program starts in its directory, with its environment, and ends when the session is closed. With
--on TARGET the session is on another machine (see limpet help run). If the connection to it is
lost, that is dialled again, and attach and log --follow go on where they were.

Else what is known of the terminals is in a directory, --state. Each terminal has a
process of limpet's that looks after it, and ends with it. Terminals of other programs
that use the library can be reached as well, if those let others do so.

When the program has ended, its last screen and the end of its output are kept: of the
last 100 terminals, for 7 days. See limpet help exit-codes for the exit codes.`,
		Example: `  id=$(limpet term start -- psql orders)
  limpet term send --wait-prompt "$id" '\dt' Enter
  limpet term screen "$id"
  limpet term attach "$id"
  limpet term stop "$id"
  limpet term -s build start -- python3 -i
  limpet term -s build --on ssh://build-box attach python3`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	where.add(cmd)
	cmd.AddCommand(
		termStartCommand(&where), termListCommand(&where), termInfoCommand(&where), termAttachCommand(&where), termSendCommand(&where),
		termScreenCommand(&where), termLogCommand(&where), termWaitCommand(&where), termResizeCommand(&where), termRecordCommand(&where),
		termStopCommand(&where), termForgetCommand(&where), termHostCommand(), helpCommand(),
	)
	return cmd
}

// termFlags say where the terminals are.
type termFlags struct{ registryFlags }

func (f *termFlags) add(cmd *cobra.Command) { f.addFlags(cmd, "terminals") }

// run is that of the jobs. The terminals of a session that is kept are in a directory, by which its keeper is reached.
func (f *termFlags) run(do func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return f.registryFlags.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
		if f.kept != nil {
			f.dir = filepath.Join(f.kept.StateDir(f.session), "terminals")
		}
		return do(ctx, cmd, args)
	})
}

// look opens the place of the terminals.
func (f *termFlags) look(ctx context.Context, do func(termPlace) error) error {
	p, err := f.place(ctx)
	if err == nil {
		err = errors.Join(do(p), p.close())
	}
	if stopped := gotSignal(ctx); stopped != nil && errors.Is(err, terminal.ErrClosed) {
		return stopped // It closed what was asked.
	}
	return err
}

// place is where the terminals are.
func (f *termFlags) place(ctx context.Context) (termPlace, error) {
	if f.far != nil {
		p, err := farTermsOf(ctx, f.far, f.on.String(), f.session)
		if err != nil {
			return nil, withSignal(ctx, f.noSession(err))
		}
		return p, nil
	}
	if err := f.known(ctx); err != nil {
		return nil, err
	}
	dir := f.dir
	if dir == "" {
		dir, _ = terminal.DefaultDir() // Open says what is wrong with it.
	}
	if _, err := os.Stat(dir); dir != "" && errors.Is(err, fs.ErrNotExist) {
		return dirTerms{dir: f.dir}, nil // There are none: it is not made.
	}
	r, err := terminal.Open(f.dir, &terminal.Options{Logger: f.console.logger()})
	if err != nil {
		return nil, err
	}
	return dirTerms{r, f.dir}, nil
}

// known makes sure that there is such a session, or was, if it is to be one that is kept.
func (f *termFlags) known(ctx context.Context) error {
	if f.kept == nil {
		return nil
	}
	if _, err := os.Stat(f.dir); err == nil {
		return nil
	}
	kept, err := f.kept.Session(ctx, f.session, nil)
	if err != nil {
		return withSignal(ctx, f.noSession(err))
	}
	kept.Disconnect()
	return nil
}
