package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/terminal"
)

type termListFlags struct {
	all, running bool
	session      string
	quiet, json  bool
}

func termListCommand(where *termFlags) *cobra.Command {
	var flags termListFlags
	cmd := &cobra.Command{
		Use:        "list [flags]",
		Aliases:    []string{"ls", "ps"},
		SuggestFor: []string{"top", "status"},
		Short:      "List the terminals",
		Long: `List prints the terminals, the oldest first: how each is, how long ago it was started,
its size, what runs on it, and the last line that this has printed. The programs that
have them are asked for it; what one that does not answer within a second has written
down is older. A terminal on which somebody is asked says for what: a password, a line or
a key.

With --json, each terminal is one line of JSON on stdout.`,
		Example: `  limpet term list
  limpet term list --running --session build
  limpet term list --json | jq -r 'select(.state == "running") | .id'`,
		Args: noArgs,
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			if err := oneOf(cmd, "all", "running"); err != nil {
				return err
			}
			if err := oneOf(cmd, "quiet", "json"); err != nil {
				return err
			}
			flags.session = where.label()
			return where.look(ctx, func(p termPlace) error {
				list, err := p.list(ctx)
				if err != nil {
					return err
				}
				return flags.print(flags.filter(p.freshened(ctx, list)))
			})
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&flags.all, "all", false, "list all terminals, which is the default")
	cmd.Flags().BoolVar(&flags.running, "running", false, "list the terminals whose program has not ended")
	cmd.Flags().BoolVarP(&flags.quiet, "quiet", "q", false, "print the ids alone")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print each terminal as a line of JSON")
	return cmd
}

func (f *termListFlags) filter(list []terminal.Info) []terminal.Info {
	var kept []terminal.Info
	for _, info := range list {
		if (f.session == "" || f.session == info.Session) && (!f.running || !info.State.Ended()) {
			kept = append(kept, info)
		}
	}
	return kept
}

func (f *termListFlags) print(list []terminal.Info) error {
	if !f.quiet && !f.json {
		width := 0
		if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
			width, _, _ = term.GetSize(fd) // Unknown, it is taken for endless.
		}
		_, err := io.WriteString(os.Stdout, termTable(list, time.Now(), width))
		return err
	}
	for _, info := range list {
		var err error
		if f.json {
			err = writeJSON(os.Stdout, info)
		} else {
			_, err = fmt.Println(info.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// termTable is a table of terminals, of which no line is longer than width, unless that
// is 0.
func termTable(list []terminal.Info, now time.Time, width int) string {
	const mostCommand = 40
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATE\tAGE\tSIZE\tSESSION\tCOMMAND\tLAST LINE")
	for _, info := range list {
		session := "-"
		if info.Session != "" {
			session = printable(info.Session)
		}
		old := max(now.Sub(info.Created), 0)
		if !info.State.Ended() && info.Lasted > 0 {
			old = info.Lasted // By its own clock, which may be another one.
		}
		row := []string{
			info.ID, termState(info), age(old).String(), sizeText(info.Size), session,
			ansi.Truncate(printable(commandOf(info)), mostCommand, "..."), printable(info.LastLine),
		}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush() // A strings.Builder takes everything.
	var cut strings.Builder
	for line := range strings.Lines(text.String()) {
		line = strings.TrimRight(line, " \n")
		if width > 0 {
			line = ansi.Truncate(line, width, "...")
		}
		cut.WriteString(line + "\n")
	}
	return cut.String()
}

// termState is the state of a terminal, with how its program ended.
func termState(info terminal.Info) string {
	switch info.State {
	case terminal.Succeeded, terminal.Failed:
		if info.Exit == nil {
			return string(info.State) // It never ran.
		}
		if info.Exit.Signal != 0 {
			return signalName(info.Exit.Signal)
		}
		return info.Exit.String()
	}
	if w := info.Asks(); w != nil {
		return fmt.Sprintf("%s, waits: %s", info.State, printable(w.For))
	}
	return string(info.State)
}
