package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/wire"
)

// connectCommand is what a limpet on another machine executes on this one.
func connectCommand() *cobra.Command {
	var stdio, protocol bool
	cmd := &cobra.Command{
		Use:    "connect",
		Short:  "Serve a limpet on another machine; for limpet itself",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case protocol && len(args) == 0:
				_, err := fmt.Fprintln(cmd.OutOrStdout(), wire.Version, wire.Version)
				return err
			case stdio && len(args) == 0:
				args = []string{connect.NoNonce} // It is offered at a socket.
			case !stdio || len(args) != 1:
				return usagef(cmd, "%w", connect.ErrNotForPeople)
			}
			p := program(newConsole().notef)
			err := connect.Serve(args[0], connect.Program{Version: p.Version, Execute: p.Execute})
			if errors.Is(err, connect.ErrNotForPeople) {
				return usagef(cmd, "%w", err)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&stdio, "stdio", false, "serve on standard input and output")
	cmd.Flags().BoolVar(&protocol, "protocol", false, "print the versions of the protocol")
	return cmd
}
