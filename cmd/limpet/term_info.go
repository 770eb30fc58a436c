package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/terminal"
)

func termInfoCommand(where *termFlags) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:        "info [flags] id",
		SuggestFor: []string{"show", "inspect", "poll"},
		Short:      "Print what is known of a terminal",
		Long:       "Info prints what is known of a terminal, a line each. With --json, it is a line of JSON.",
		Example:    "  limpet term info psql\n  limpet term info --json psql | jq .bytes",
		Args:       wants(1, 1, oneTerm),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return where.with(ctx, cmd, args[0], func(t *reached) error {
				if asJSON {
					return writeJSON(os.Stdout, t.info)
				}
				_, err := fmt.Print(infoText(t.info))
				return err
			})
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON")
	return cmd
}

func infoText(info terminal.Info) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	say := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s:\t%s\n", name, printable(value))
		}
	}
	when := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Local().Format(time.DateTime)
	}
	say("id", info.ID)
	say("state", describeTerm(info))
	say("command", commandOf(info))
	say("directory", info.Dir)
	say("session", info.Session)
	say("size", sizeText(info.Size))
	if info.PID != 0 {
		say("pid", fmt.Sprintf("%d, looked after by %d", info.PID, info.OwnerPID))
	}
	say("started", when(info.Started))
	say("ended", when(info.Ended))
	if info.Truncated {
		say("output", fmt.Sprintf("%d lines, kept from byte %d on", info.Lines, info.Kept))
	}
	say("last output", when(info.LastOutput))
	say("last line", info.LastLine)
	if w := info.Waits; w != nil {
		say("input", fmt.Sprintf("%s, since %s", w, when(w.Since)))
	}
	say("recording", info.Recording)
	say("recording failed", info.RecordingFailed)
	_ = table.Flush() // A strings.Builder takes everything.
	return text.String()
}
