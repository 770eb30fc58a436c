package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

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

What is known of the terminals is in a directory, --state. Each terminal has a
process of limpet's that looks after it, and ends with it. Terminals of other programs
that use the library can be reached as well, if those let others do so.

When the program has ended, its last screen and the end of its output are kept: of the
last 100 terminals, for 7 days. See limpet help exit-codes for the exit codes.`,
		Example: `  id=$(limpet term start -- psql orders)
  limpet term send --wait-prompt "$id" '\dt' Enter
  limpet term screen "$id"
  limpet term attach "$id"
  limpet term stop "$id"`,
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

func (f *termFlags) add(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&f.dir, "state", "", "the `DIR` of the terminals (default: limpet/terminals in XDG_STATE_HOME, or in ~/.local/state)")
}

// look opens the terminals. Where no directory is there are none: then it is not made, and
// the registry is nil.
func (f *termFlags) look(do func(*terminal.Registry) error) error {
	dir := f.dir
	if dir == "" {
		dir, _ = terminal.DefaultDir() // Open says what is wrong with it.
	}
	if _, err := os.Stat(dir); dir != "" && errors.Is(err, fs.ErrNotExist) {
		return do(nil)
	}
	r, err := terminal.Open(f.dir, &terminal.Options{Logger: f.console.logger()})
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.Close())
}

// place is where the terminals are, for messages.
func (f *termFlags) place(r *terminal.Registry) string {
	if r != nil {
		return r.Dir()
	}
	dir, _ := terminal.DefaultDir() // Where there is none, look has said so.
	return cmp.Or(f.dir, dir)
}
