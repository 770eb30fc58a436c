package main

import (
	"context"
	"fmt"
	"math"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/jobs"
)

type waitFlags struct {
	where   *registryFlags
	options jobs.WaitOptions
	json    bool
}

func jobsWaitCommand(where *registryFlags) *cobra.Command {
	flags := waitFlags{where: where}
	cmd := &cobra.Command{
		Use:   "wait [flags] [id...]",
		Short: "Wait for the end of a job, or for what it prints or opens",
		Long: `Wait waits until one of the jobs has ended, or until something else that is asked for
has come, and prints what that was. Without ids, it waits for any of the jobs that
run.

The exit code is that of the job if it has ended (128+n if signal n has ended it, 125
if nobody knows how), 0 if the pattern, the silence or the port has come, and 124 if
the time is over. Then the jobs run on, and so they do after a Ctrl-C.

With --json, it prints a line of JSON.`,
		Example: `  limpet jobs wait make
  limpet jobs wait --pattern 'listening on' --timeout 30s server
  limpet jobs wait --port 8080 --timeout 30s server
  limpet jobs wait --silence 5s installer`,
		Args: wants(0, math.MaxInt, someJobs),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			return flags.run(ctx, cmd, args)
		}),
	}
	o := &flags.options
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&o.Pattern, "pattern", "", "wait for a line that matches `REGEXP` (RE2), which may be there already")
	cmd.Flags().Int64Var(&o.From, "from", 0, "look for it from the `N`-th byte on, counted from 0")
	durationVar(cmd.Flags(), &o.Silence, "silence", 0, "wait until a job has printed nothing for `TIME`, as in 5s")
	cmd.Flags().StringVar(&o.Port, "port", "", "wait until somebody listens at `PORT` of this machine, or at HOST:PORT")
	durationVar(cmd.Flags(), &o.Timeout, "timeout", 0, "wait no longer than `TIME`, as in 5 (seconds), 500ms or 5m (default: as long as it takes)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print a line of JSON")
	return cmd
}

func (f *waitFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if given("pattern") {
		if err := matchable(cmd, "pattern", f.options.Pattern); err != nil {
			return err
		}
	}
	switch {
	case given("from") && !given("pattern"):
		return usagef(cmd, "--from means nothing without --pattern")
	case f.options.From < 0:
		return usagef(cmd, "--from %d: wants 0 or more", f.options.From)
	case given("port") && !isPort(f.options.Port):
		return usagef(cmd, "--port %q: wants a number from 1 to 65535, as in 8080, or HOST:PORT, as in localhost:8080", f.options.Port)
	}
	return timed(cmd, "silence", "timeout")
}

// isPort reports whether a text is what WaitOptions takes for a port.
func isPort(text string) bool {
	number := text
	if strings.Contains(text, ":") {
		_, number, _ = net.SplitHostPort(text) // It is empty after an error.
	}
	n, err := strconv.ParseUint(number, 10, 16)
	return err == nil && n > 0
}

func (f *waitFlags) run(ctx context.Context, cmd *cobra.Command, said []string) error {
	// Who waits at a shell can end it by a key.
	return f.where.look(ctx, jobs.Options{MaxWait: math.MaxInt64}, func(r jobs.Handle) (err error) {
		o := f.options
		if o.IDs, err = idsOf(cmd, r, said); err != nil {
			return err
		}
		got, err := r.Wait(ctx, o)
		if err != nil {
			return err
		}
		got.Timeout = o.Timeout // 0: there was none.
		if f.json {
			err = writeJSON(os.Stdout, got)
		} else {
			_, err = fmt.Println(f.line(got))
		}
		switch {
		case err != nil:
			return err
		case got.Reason == jobs.WaitTimeout:
			return exit(codeTimeout)
		case got.Reason == jobs.WaitExited:
			return exit(codeOfJob(got.Job))
		}
		return nil
	})
}

// line says what has come:
//
//	job-make-x3k9q2ab: exited: exit 2, after 1.2s, 4711 bytes of output
//	job-server-7dhq2mzk: matched: line 12: listening on :8080
func (f *waitFlags) line(got jobs.Waited) string {
	what := ""
	switch got.Reason {
	case jobs.WaitExited:
		what = describe(got.Job)
	case jobs.WaitMatched:
		what = fmt.Sprintf("line %d: %s", got.Match.Number, printable(got.Match.Text))
	case jobs.WaitSilent:
		what = fmt.Sprintf("for %v", got.Job.Quiet.Round(time.Millisecond))
	case jobs.WaitPort:
		what = f.options.Port
	default:
		what = fmt.Sprintf("after %v; %s", f.options.Timeout, describe(got.Job))
	}
	return fmt.Sprintf("%s: %s: %s", got.Job.ID, got.Reason, what)
}
