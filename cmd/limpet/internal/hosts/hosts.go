// Package hosts is the noun hosts of limpet's command line: the machines that sessions can be on.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/host"
)

// Command is limpet hosts.
func Command(p sessions.Program, help *cobra.Command, noCommand cobra.PositionalArgs) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "hosts",
		Aliases: []string{"host"},
		Short:   "Other machines that sessions can be on",
		Long: `Hosts are other machines that sessions can be on: limpet run --on TARGET. Add gives a target a name, by
which --on knows it.

A connection is shared by all limpets of the user, and stays until nobody has used it for ten minutes: the next
command need not wait for a new one. List shows those that there are, and close ends them. What is kept
over there does not need them.

What is copied to a machine that has no limpet is the first of these which is for its system and of this
version: a file limpet-OS-ARCH, as limpet-linux-arm64, in the directory that --agents or LIMPET_AGENTS names, or
beside this limpet; and, for systems as this one, this limpet itself. Such a file is best the part that serves
connections, which is half as large. In a checkout of this version,

  cmd/limpet-connect/build DIR

makes it for Linux on amd64 and arm64; cmd/limpet-connect/build DIR linux/riscv64 for others. Limpet mcp --on
needs limpet as a whole there, and copies that.`,
		Example: `  limpet hosts add dev ssh://build-box
  limpet run --on dev -s build 'make'
  limpet hosts check dev
  limpet hosts copy --on dev ./notes.txt :
  limpet hosts list`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(p), addCommand(), removeCommand(), infoCommand(p), checkCommand(p), copyCommand(p), closeCommand(p), help)
	return cmd
}

// row is a line of limpet hosts list --json. Its names are a promise: they only ever grow.
type row struct {
	Name      string     `json:"name,omitempty"`
	Target    string     `json:"target"`
	Connected *time.Time `json:"connected,omitempty"` // since when; null if there is no connection
	Active    int        `json:"active"`              // requests that are under way
}

func listCommand(p sessions.Program) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list [flags]",
		Aliases: []string{"ls"},
		Short:   "List the machines that have names, and the connections",
		Long: `List prints the machines that have names, and others to which there is a connection. It
connects to none.

With --json, each is one line of JSON on stdout.`,
		Example: "  limpet hosts list",
		Args:    noun.Wants(0, 0, "takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			rows, err := list(ctx)
			if err != nil {
				return err
			}
			table := [][]string{{"NAME", "TARGET", "CONNECTION"}}
			for _, one := range rows {
				if asJSON {
					if err := noun.JSON(os.Stdout, one); err != nil {
						return err
					}
					continue
				}
				table = append(table, []string{one.Name, one.Target, one.connection(time.Now())})
			}
			if asJSON || len(table) == 1 {
				return nil
			}
			return noun.Table(os.Stdout, table...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each machine as a line of JSON")
	return cmd
}

func (r row) connection(now time.Time) string {
	if r.Connected == nil {
		return ""
	}
	lasts := max(now.Sub(*r.Connected), 0).Round(time.Second)
	if r.Active > 0 {
		return fmt.Sprintf("for %v, %d requests", lasts, r.Active)
	}
	return fmt.Sprintf("for %v, idle", lasts)
}

func list(ctx context.Context) ([]row, error) {
	names, err := host.ReadNames()
	if err != nil {
		return nil, err
	}
	shared, err := host.ListShared(ctx)
	if err != nil {
		return nil, err
	}
	var rows []row
	connected := func(name, target string) (found bool) { // Of one target there may be several: one of exec: for each directory, say.
		for _, one := range shared {
			if one.Target == target {
				rows = append(rows, row{Name: name, Target: target, Connected: &one.Since, Active: one.Active})
				found = true
			}
		}
		return found
	}
	named := make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(names.Hosts)) {
		target := names.Hosts[name].Target
		if named[target] = true; !connected(name, target) {
			rows = append(rows, row{Name: name, Target: target})
		}
	}
	for _, one := range shared {
		if !named[one.Target] {
			rows = append(rows, row{Target: one.Target, Connected: &one.Since, Active: one.Active})
		}
	}
	return rows, nil
}

func addCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "add name target",
		Short: "Give a machine a name",
		Long: `Add gives a target a name, which --on knows then. It is written to limpet/hosts.json in XDG_CONFIG_HOME, or in
~/.config, and replaces one of that name. See limpet help run for targets.`,
		Example: `  limpet hosts add dev ssh://me@build-box:2222
  limpet hosts add vm 'exec:limactl shell dev sh'`,
		Args: noun.Wants(2, 2, "wants a name and a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := host.ReadNames()
			if err != nil {
				return err
			}
			if err := names.Add(args[0], args[1]); err != nil {
				return noun.Usagef(cmd, "%w", err)
			}
			return names.Write()
		},
	}
}

func removeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove name...",
		Aliases: []string{"rm"},
		Short:   "Take the names of machines away",
		Long:    "Remove takes names out of hosts.json. Connections, and what is kept over there, stay.",
		Example: "  limpet hosts remove dev",
		Args:    noun.Wants(1, 1000, "wants names"),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := host.ReadNames()
			if err != nil {
				return err
			}
			for _, name := range args {
				if _, ok := names.Hosts[name]; !ok {
					return noun.Usagef(cmd, "%q: %w; limpet hosts list has those that do", name, host.ErrNoName)
				}
				delete(names.Hosts, name)
			}
			return names.Write()
		},
	}
}

func closeCommand(p sessions.Program) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:     "close [flags] name|target...",
		Aliases: []string{"disconnect"},
		Short:   "End connections",
		Long: `Close ends connections that are shared. What uses one is told that it is lost; what is kept over there, and
commands that run there, stay.`,
		Example: "  limpet hosts close --all",
		Args: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return noun.Usagef(cmd, "wants names or targets, or --all")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var targets []host.Target // All of them are read first: a mistake ends no connection.
			for _, said := range args {
				t, err := host.Resolve(said)
				if err != nil {
					return noun.Usagef(cmd, "%w", err)
				}
				targets = append(targets, t)
			}
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			shared, err := host.ListShared(ctx)
			if err != nil {
				return err
			}
			end := func(which func(host.Shared) bool) (ended int, err error) {
				for _, one := range shared {
					if which(one) {
						ended++
						err = errors.Join(err, one.End(ctx)) // One that does not end keeps none of the others.
					}
				}
				return ended, err
			}
			if all {
				_, err := end(func(host.Shared) bool { return true })
				return err
			}
			var failed error
			for _, t := range targets {
				ended, err := end(func(s host.Shared) bool { return s.Target == t.String() })
				if ended == 0 {
					p.Note("there is no connection to %s", t)
				}
				failed = errors.Join(failed, err)
			}
			return failed
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "end all connections")
	return cmd
}
