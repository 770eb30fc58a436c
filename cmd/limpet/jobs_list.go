package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/jobs"
)

type listFlags struct {
	belongs     belongs
	status      []string
	running     bool
	quiet, json bool
}

// The states of a job, and those before its end.
var (
	unfinished = []jobs.State{jobs.Starting, jobs.Running, jobs.Ending}
	anyState   = append(slices.Clone(unfinished), jobs.Exited, jobs.Failed, jobs.Lost)
)

func jobsListCommand(where *registryFlags) *cobra.Command {
	var flags listFlags
	cmd := &cobra.Command{
		Use:        "list [flags]",
		Aliases:    []string{"ls", "ps"},
		SuggestFor: []string{"top", "status"},
		Short:      "List the jobs",
		Long: `List prints the jobs, the oldest first: how each is, for how long it ran, for how
long it has printed nothing, how many bytes it has printed in all, and what it runs. One
that waits for what is typed on its terminal says for what: a password, a line, a key, or,
of a shell at its prompt, a command; limpet jobs write types it.

With --json, each job is one line of JSON on stdout.`,
		Example: `  limpet jobs list
  limpet jobs list --running --task build
  limpet jobs list --json | jq -r 'select(.exit.code != 0) | .id'`,
		Args: noArgs,
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			filter, err := flags.filter(cmd)
			if err != nil {
				return err
			}
			return where.look(ctx, jobs.Options{}, func(r jobs.Handle) error {
				list, err := r.List(filter)
				if err != nil {
					return err
				}
				err = flags.print(list)
				if !flags.quiet && !flags.json {
					for _, job := range list {
						if text, found := strings.CutPrefix(orphans(job), "; "); found {
							where.console.notef("%s: %s", printable(job.ID), text)
						}
					}
				}
				return err
			})
		}),
	}
	flags.belongs.where = where
	flags.belongs.addFilters(cmd, "list")
	cmd.Flags().StringArrayVar(&flags.status, "status", nil, "list the jobs that are `STATE`: "+states()+"; repeatable")
	cmd.Flags().BoolVar(&flags.running, "running", false, "list the jobs that have not ended")
	cmd.Flags().BoolVarP(&flags.quiet, "quiet", "q", false, "print the ids alone")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print each job as a line of JSON")
	return cmd
}

func states() string {
	names := make([]string, len(anyState))
	for i, state := range anyState {
		names[i] = string(state)
	}
	return strings.Join(names, ", ")
}

func (f *listFlags) filter(cmd *cobra.Command) (jobs.Filter, error) {
	filter, err := f.belongs.filter(cmd)
	if err == nil {
		err = oneOf(cmd, "quiet", "json")
	}
	if err == nil {
		err = oneOf(cmd, "status", "running")
	}
	if f.running {
		filter.States = unfinished
	}
	for _, name := range f.status {
		if !slices.Contains(anyState, jobs.State(name)) {
			return filter, usagef(cmd, "--status %q: there are %s", name, states())
		}
		filter.States = append(filter.States, jobs.State(name))
	}
	return filter, err
}

func (f *listFlags) print(list []jobs.Job) error {
	if !f.quiet && !f.json {
		width := 0
		if fd := int(os.Stdout.Fd()); term.IsTerminal(fd) {
			width, _, _ = term.GetSize(fd) // Unknown, it is taken for endless.
		}
		_, err := io.WriteString(os.Stdout, jobTable(list, width))
		return err
	}
	for _, job := range list {
		var err error
		if f.json {
			err = writeJSON(os.Stdout, job)
		} else {
			_, err = fmt.Println(printable(job.ID))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// jobTable is a table of jobs, of which no line is longer than width, unless that is 0:
// the command is what is cut.
func jobTable(list []jobs.Job, width int) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tSTATE\tELAPSED\tQUIET\tOUTPUT\tTASK\tCOMMAND")
	for _, job := range list {
		quiet, task := "-", "-"
		if !job.State.Finished() {
			quiet = age(job.Quiet).String()
		}
		if job.Task != "" {
			task = printable(job.Task)
		}
		row := []string{printable(job.ID), stateCell(job), elapsed(job), quiet, strconv.FormatInt(job.Output.End, 10), task, printable(job.Command)}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	_ = table.Flush() // A strings.Builder takes everything.
	if width <= 0 {
		return text.String()
	}
	var cut strings.Builder
	for line := range strings.Lines(text.String()) {
		cut.WriteString(ansi.Truncate(strings.TrimSuffix(line, "\n"), width, "...") + "\n")
	}
	return cut.String()
}

// stateCell is the state of a job, with how it ended, and why if somebody ended it.
func stateCell(job jobs.Job) string {
	cell := printable(string(job.State))
	if job.State == jobs.Exited {
		cell = fmt.Sprintf("exit %d", job.Exit.Code)
		if job.Exit.Signal != 0 {
			cell = signalName(job.Exit.Signal)
		}
	}
	if job.Exit != nil && job.Exit.Stopped != "" {
		cell += " (" + printable(string(job.Exit.Stopped)) + ")"
	}
	switch {
	case job.Waits != nil:
		cell += ", waits: " + printable(job.Waits.For)
	case len(job.Orphans) > 0:
		cell += ", supervisor killed"
	case job.Leftover:
		cell += ", left some"
	}
	return cell
}
