package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/jobs"
)

func jobsHistoryCommand(where *registryFlags) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "history [flags] id",
		Short: "Print what has happened to a job",
		Long: `History prints when the job was started, what of it was told, what was done with it,
and how it ended. Of a long one the beginning is left out.

With --json, each event is one line of JSON.`,
		Example: "  limpet jobs history make",
		Args:    wants(1, 1, oneJob),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return where.look(ctx, jobs.Options{}, func(r jobs.Handle) error {
				id, err := idOf(cmd, r, args[0])
				if err != nil {
					return err
				}
				events, err := r.History(id)
				if err != nil {
					return err
				}
				if !asJSON {
					_, err = fmt.Print(historyTable(events))
					return err
				}
				for _, event := range events {
					if err := writeJSON(os.Stdout, event); err != nil {
						return err
					}
				}
				return nil
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each event as a line of JSON")
	return cmd
}

func historyTable(events []jobs.Event) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, e := range events {
		what := printable(e.Why)
		switch {
		case e.Pattern != "":
			what = fmt.Sprintf("line %d: %s", e.Number, printable(e.Line))
		case e.Count > 0:
			what = fmt.Sprintf("%d matches were not told", e.Count)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", e.Time.Local().Format(time.DateTime), e.Kind, what)
	}
	_ = table.Flush() // A strings.Builder takes everything.
	return text.String()
}
