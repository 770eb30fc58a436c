package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/jobs"
)

type stopFlags struct {
	belongs belongs
	all     bool
	json    bool
}

func jobsStopCommand(where *registryFlags) *cobra.Command {
	var flags stopFlags
	cmd := &cobra.Command{
		Use:        "stop [flags] [id...]",
		Aliases:    []string{"kill"},
		SuggestFor: []string{"end", "cancel", "terminate"},
		Short:      "End jobs, with all that they have started",
		Long: `Stop ends the jobs by signals, first gentle ones and then SIGKILL, with all that they
have started, and prints how each has ended. They stay in the list, with their output.

A job that has ended already is an error where it is named, and none where jobs are
stopped by --task, --label, --all or, with --state, --session: then there may also be
none that runs.

With --json, each job is one line of JSON on stdout.`,
		Example: `  limpet jobs stop server
  limpet jobs stop --task build
  limpet jobs stop --all`,
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			filter, err := flags.filter(cmd, args)
			if err != nil {
				return err
			}
			return where.change(ctx, jobs.Options{}, func(r jobs.Handle) error {
				var stopped []jobs.Stopped
				if len(args) > 0 {
					ids, err := idsOf(cmd, r, args)
					if err != nil {
						return err
					}
					stopped, err = stopEach(ctx, r, ids)
					return errors.Join(flags.print(stopped), err)
				}
				stopped, err := r.StopAll(ctx, filter)
				return errors.Join(flags.print(stopped), err)
			})
		}),
	}
	flags.belongs.where = where
	flags.belongs.addFilters(cmd, "stop")
	cmd.Flags().BoolVar(&flags.all, "all", false, "stop all jobs")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print each job as a line of JSON")
	return cmd
}

func (f *stopFlags) filter(cmd *cobra.Command, args []string) (jobs.Filter, error) {
	filter, err := f.belongs.filter(cmd)
	if err != nil {
		return filter, err
	}
	filter.All = f.all
	for _, name := range belongsNames {
		if err := oneOf(cmd, "all", name); err != nil {
			return filter, err
		}
	}
	some := f.all || filter.Session != ""
	for _, name := range belongsNames {
		some = some || cmd.Flags().Changed(name)
	}
	switch {
	case some && len(args) > 0:
		return filter, usagef(cmd, "wants ids, or flags that say which jobs, and not both")
	case !some && len(args) == 0:
		return filter, usagef(cmd, "%s, or --task, --label or --all", someJobs)
	}
	return filter, nil
}

// stopEach stops jobs at the same time, and returns them in their order.
func stopEach(ctx context.Context, r jobs.Handle, ids []string) ([]jobs.Stopped, error) {
	stopped, errs := make([]jobs.Stopped, len(ids)), make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { stopped[i], errs[i] = r.Stop(ctx, id) })
	}
	all.Wait()
	var done []jobs.Stopped
	for i := range ids {
		if errs[i] == nil {
			done = append(done, stopped[i])
		}
	}
	return done, errors.Join(errs...)
}

// stoppedJSON is a line of "jobs stop --json".
type stoppedJSON struct {
	Job    jobs.Job      `json:"job"`
	Killed []processJSON `json:"killed"` // by SIGKILL: nothing else helped
	Left   []processJSON `json:"left"`   // run on in spite of it
}

func (f *stopFlags) print(stopped []jobs.Stopped) error {
	slices.SortStableFunc(stopped, func(a, b jobs.Stopped) int {
		return cmp.Or(a.Job.Started.Compare(b.Job.Started), cmp.Compare(a.Job.ID, b.Job.ID))
	})
	var errs []error
	for _, s := range stopped {
		var err error
		if f.json {
			err = writeJSON(os.Stdout, stoppedJSON{s.Job, processes(s.Outcome.Killed), processes(s.Outcome.Left)})
		} else {
			_, err = fmt.Printf("%s: %s\n", s.Job.ID, describe(s.Job))
		}
		if len(s.Outcome.Left) > 0 {
			err = errors.Join(err, fmt.Errorf("%s: could not end %v: perhaps it is another user's", s.Job.ID, s.Outcome.Left))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func processes(list []command.Process) []processJSON {
	all := []processJSON{}
	for _, p := range list {
		all = append(all, processJSON{p.PID, p.Command})
	}
	return all
}

func jobsForgetCommand(where *registryFlags) *cobra.Command {
	finished := false
	cmd := &cobra.Command{
		Use:        "forget [flags] [id...]",
		Aliases:    []string{"rm", "remove", "delete"},
		SuggestFor: []string{"prune", "clean"},
		Short:      "Remove jobs that have ended, with their output",
		Long:       "Forget removes jobs that have ended, with their output. See limpet help jobs for when\nthat happens by itself.",
		Example:    "  limpet jobs forget make\n  limpet jobs forget --finished",
		Args:       wants(0, math.MaxInt, someJobs),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if finished == (len(args) > 0) {
				return usagef(cmd, "%s, or --finished", someJobs)
			}
			return where.change(ctx, jobs.Options{}, func(r jobs.Handle) error {
				if finished {
					return forgetFinished(r)
				}
				ids, err := idsOf(cmd, r, args)
				for _, id := range ids {
					err = errors.Join(err, r.Forget(id))
				}
				return err
			})
		}),
	}
	cmd.Flags().BoolVar(&finished, "finished", false, "remove all that have ended")
	return cmd
}

func forgetFinished(r jobs.Handle) error {
	list, err := r.List(jobs.Filter{States: []jobs.State{jobs.Exited, jobs.Failed, jobs.Lost}})
	for _, job := range list {
		if job.Leftover {
			continue // What it has started runs: it is not over.
		}
		if e := r.Forget(job.ID); !errors.Is(e, jobs.ErrNotFound) {
			err = errors.Join(err, e)
		}
	}
	return err
}
