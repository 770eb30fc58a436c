// Limpet runs commands in a bash that stays: what one command leaves behind,
// the next one finds.
//
//	limpet run 'cd /tmp' 'x=1' 'echo $x in $PWD'
//	limpet repl
//
// The program is a thin layer on package shell. It turns flags into
// shell.Options and results into live output, JSON and exit codes; exit.go has
// all of the latter.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
)

func main() { os.Exit(limpet(os.Args[1:])) }

// limpet runs the program and returns its exit code. Whatever goes wrong is
// said here, once, on stderr.
func limpet(args []string) int {
	root := rootCommand(args)
	out := new(output)
	root.SetOut(out)
	root.SetArgs(runArgs(root, args))
	err := root.Execute()
	if err == nil {
		err = out.err
	}
	if text := explain(err); text != "" {
		fmt.Fprintln(os.Stderr, "limpet: "+text)
	}
	return codeOf(err)
}

// output is standard output for what is printed without a look at the error, as cobra prints help: limpet tells the first one
// at its end. It is not safe for concurrent use.
type output struct{ err error }

func (o *output) Write(p []byte) (int, error) {
	n, err := os.Stdout.Write(p)
	o.err = cmp.Or(o.err, err)
	return n, err
}

// A subcommand has a name, and a function that makes it.
type subcommand struct {
	name string
	make func() *cobra.Command
}

func subcommands() []subcommand {
	return []subcommand{
		{"run", runCommand}, {"repl", replCommand}, {"jobs", jobsCommand}, {"term", termCommand}, {"session", sessionCommand}, {"hosts", hostsCommand},
		{"connect", connectCommand}, {"mcp", mcpCommand}, {"watch", watchCommand}, {"serve", serveCommand}, {"sandbox", sandboxCommand},
		{"approve", approveCommand}, {"approvals", approvalsCommand}, {"version", versionCommand}, {"exit-codes", exitCodesTopic},
		{"passwords", passwordsTopic}, {"audit", auditTopic},
	}
}

// rootCommand returns limpet's command with the subcommand that the first argument names, or with all subcommands if it names none. Making
// the flags of all of them takes a tenth of the time of a start.
func rootCommand(args []string) *cobra.Command {
	upperV := false // -V is as usual as -v, which cobra has.
	root := &cobra.Command{
		Use:   "limpet",
		Short: "Run commands in a shell that stays where you left it",
		Long: `Limpet keeps a shell where you left it. One bash runs command after command,
so that cd, variables, functions, options, traps and jobs stay; a command that
hangs is stopped without losing them, and a bash that ends is brought back.`,
		Example: `  limpet run 'cd /tmp' 'x=1' 'echo $x in $PWD'
  limpet repl`,
		Args:          noCommand,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if upperV {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "limpet "+version())
				return err
			}
			return cmd.Help()
		},
	}
	root.Flags().BoolVarP(&upperV, "Version", "V", false, "as --version")
	_ = root.Flags().MarkHidden("Version") // It is there.
	root.SetContext(context.Background())
	root.SetVersionTemplate("limpet {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return flagError(cmd, err, "") })
	root.SetHelpCommand(helpCommand())
	all := subcommands()
	if i := slices.IndexFunc(all, func(sub subcommand) bool { return len(args) > 0 && args[0] == sub.name }); i >= 0 {
		all = all[i : i+1]
	}
	for _, sub := range all {
		root.AddCommand(sub.make())
	}
	return root
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef(cmd, "takes no arguments, got %q", args[0])
}
