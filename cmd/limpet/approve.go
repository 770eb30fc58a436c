package main

import (
	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
)

func approveCommand() *cobra.Command {
	return approve.Command(exit, helpCommand(), noCommand)
}

// approveExitCodes are those of limpet approve.
var approveExitCodes = []exitCode{
	{0, "", "the script is known to change nothing", nil},
	{codeUsage, "", "wrong usage: a bad flag, or no script", nil},
	{approve.CodeAsk, "", "a person should decide about the script", nil},
	{approve.CodeDeny, "", "a rule denies the script", nil},
}
