package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func mcpConfigCommand() *cobra.Command {
	var flags mcpFlags
	cmd := &cobra.Command{
		Use:   "config HOST [flags]",
		Short: "Print what an agent host needs to start limpet mcp",
		Long: `Config prints the block of an agent host's configuration by which that starts limpet mcp
with these flags, and says on standard error where it goes and what else the host wants.
Paths are written in full: a host may start its servers elsewhere.

There are ` + hostNames() + `.`,
		Example: `  limpet mcp config claude-code --sandbox workspace-write >.mcp.json
  limpet mcp config codex --sandbox workspace-write --workspace ~/src/project`,
		Args:              wants(1, 1, "wants the name of one host: "+hostNames()),
		ValidArgsFunction: completeHosts,
		RunE: func(cmd *cobra.Command, args []string) error {
			host, err := hostNamed(cmd, args[0])
			if err != nil {
				return err
			}
			argv, err := started(cmd, &flags)
			if err != nil {
				return err
			}
			text, err := host.text(argv)
			if err != nil {
				return err
			}
			console := newConsole()
			if _, err := fmt.Print(text); err != nil {
				return err
			}
			console.notef("for %s this is %s, or goes into what is there", host.title, host.file)
			for _, note := range host.notes {
				console.notef("%s", note)
			}
			if !cmd.Flags().Changed("sandbox") && !cmd.Flags().Changed("allow") {
				console.notef("without --sandbox an agent can do whatever you can: limpet mcp config %s --sandbox workspace-write", host.name)
			}
			return nil
		},
	}
	flags.add(cmd)
	return cmd
}

// pathFlags are those of limpet mcp that name files.
var pathFlags = []string{"dir", "init", "bash", "runtime-dir", "state", "workspace", "ro", "rw"}

// started is the command line of limpet mcp with the flags that were given, in their order, and paths
// in full.
func started(cmd *cobra.Command, flags *mcpFlags) ([]string, error) {
	if flags.overHTTP(cmd) || cmd.Flags().Changed("token-file") {
		return nil, usagef(cmd, "a host starts limpet mcp on standard input and output: leave --http and --token-file out")
	}
	if _, err := flags.options(cmd); err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding limpet itself: %w", err)
	}
	argv := []string{program, "mcp"}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			inPath := flag.Name == "bash" && !strings.ContainsRune(value, filepath.Separator)
			if slices.Contains(pathFlags, flag.Name) && !inPath {
				value = absolute(value)
			}
			argv = append(argv, "--"+flag.Name+"="+value)
		}
	})
	sandboxed := cmd.Flags().Changed("sandbox") || cmd.Flags().Changed("allow")
	if sandboxed && !cmd.Flags().Changed("workspace") && !cmd.Flags().Changed("dir") {
		argv = append(argv, "--workspace="+absolute("."))
	}
	return argv, nil
}

func completeHosts(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return strings.Split(hostNames(), ", "), cobra.ShellCompDirectiveNoFileComp
}
