package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/internal/keeper"
)

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Version prints the version of limpet, and of the Go and the system that it was built for.",
		Args:  noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "limpet "+version())
			return err
		},
	}
}

// version is what the Go toolchain stamped into the binary, so that there is no
// number here to forget.
func version() string { return keeper.Version() }
