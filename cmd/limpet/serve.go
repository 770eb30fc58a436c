package main

import (
	"github.com/spf13/cobra"

	page "github.com/limpet-sh/limpet/cmd/limpet/internal/serve"
)

// serveCommand is the page for people who watch.
func serveCommand() *cobra.Command { return page.Command(program(newConsole().notef)) }
