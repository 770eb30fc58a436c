package main

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/jobs"
)

type pollFlags struct {
	where *registryFlags
	lines int
	bytes byteSize
	plain bool
	json  bool
}

func jobsPollCommand(where *registryFlags) *cobra.Command {
	flags := pollFlags{where: where, bytes: jobs.DefaultPollBytes}
	cmd := &cobra.Command{
		Use:        "poll [flags] id",
		SuggestFor: []string{"info", "show", "inspect"},
		Short:      "Print what is new of a job's output, and how the job is",
		Long: `Poll prints to stdout what the job has printed since the last poll of anybody, and
to stderr, in a line, how it is. It does not wait; see jobs wait, and jobs log
--follow.

While another program owns the jobs, what is new is known to that one alone. Then
the last lines are printed.

With --json, all of it is one line of JSON on stdout.`,
		Example: `  limpet jobs poll make
  limpet jobs poll --lines 20 make
  limpet jobs poll --json make | jq -r .job.state`,
		Args: wants(1, 1, oneJob),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := positive(cmd, "lines"); err != nil {
				return err
			}
			return flags.run(ctx, cmd, args[0])
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().IntVar(&flags.lines, "lines", 0, "print at least the last `N` lines, also what is not new (default: none; with --json: 10)")
	cmd.Flags().Var(&flags.bytes, "bytes", "print no more than `BYTES` of what is new; the rest comes with the next poll")
	cmd.Flags().BoolVar(&flags.plain, "plain", false, "leave escape sequences out")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print a line of JSON")
	return cmd
}

func (f *pollFlags) run(ctx context.Context, cmd *cobra.Command, said string) error {
	err := f.where.change(ctx, jobs.Options{}, func(r jobs.Handle) error { return f.poll(cmd, r, said, true) })
	if errors.Is(err, jobs.ErrOwned) {
		return f.where.look(ctx, jobs.Options{}, func(r jobs.Handle) error { return f.poll(cmd, r, said, false) })
	}
	return err
}

func (f *pollFlags) poll(cmd *cobra.Command, r jobs.Handle, said string, own bool) error {
	id, err := idOf(cmd, r, said)
	if err != nil {
		return err
	}
	p, err := r.Poll(id, &jobs.PollOptions{Lines: f.lines, Bytes: int(f.bytes), Plain: f.plain})
	if err != nil {
		return err
	}
	if f.json {
		if !own {
			f.where.console.notef("another program owns the jobs, and knows what is new; here that is counted from the beginning")
		}
		return writeJSON(os.Stdout, p)
	}
	text, note := f.text(p, own)
	if note != "" {
		f.where.console.notef("%s", note)
	}
	if _, err := io.WriteString(&f.where.console.stdout, text); err != nil {
		return err
	}
	if p.More > 0 && own {
		f.where.console.notef("%d bytes more are new: poll again, or raise --bytes", p.More)
	}
	f.where.console.notef("%s: %s", id, describe(p.Job))
	return nil
}

// text is what to print, and what to say before it.
func (f *pollFlags) text(p jobs.Polled, own bool) (text, note string) {
	last := strings.Join(p.Last, "\n")
	if last != "" {
		last += "\n"
	}
	switch {
	case !own:
		return last, "another program owns the jobs, and knows what is new; these are the last lines"
	case p.Dropped > 0:
		return p.New, "output was dropped before this, as it came faster than it was polled; raise jobs start --output-limit"
	case p.More == 0 && strings.Count(p.New, "\n") < f.lines:
		return last, ""
	}
	return p.New, ""
}
