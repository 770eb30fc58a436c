package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// helpCommand is "limpet help". The one that cobra has takes a topic that it
// does not know for a success. Commands that have others have one, too.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command or topic]",
		Short: "Help about a command or a topic",
		Long:  "Help tells about a command or a topic, as in limpet help run.",
		RunE: func(cmd *cobra.Command, args []string) error {
			about, rest, err := cmd.Parent().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef(cmd.Parent(), "no help about %q", strings.Join(args, " "))
			}
			about.InitDefaultHelpFlag() // It is listed, but exists only once the command has run.
			return about.Help()
		},
	}
}
