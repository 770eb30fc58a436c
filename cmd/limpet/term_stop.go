package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

type termStopFlags struct {
	where *termFlags
	all   bool
	json  bool
}

func termStopCommand(where *termFlags) *cobra.Command {
	flags := termStopFlags{where: where}
	cmd := &cobra.Command{
		Use:        "stop [flags] [id...]",
		Aliases:    []string{"kill"},
		SuggestFor: []string{"end", "cancel", "terminate"},
		Short:      "End the programs on terminals, with all that they have started",
		Long: `Stop ends the programs, with all that they have started: they hear that their terminal
hangs up, then are asked to end, and then made to. It prints how each has ended. The
terminals stay in the list, with their last screen.

A program that has ended already is an error where its terminal is named, and none
where they are stopped by --all or, with --state, by --session: then there may also be none
that runs.

With --json, each terminal is one line of JSON on stdout.`,
		Example: "  limpet term stop psql\n  limpet term stop --all",
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			many := flags.all || where.label() != ""
			switch {
			case many && len(args) > 0:
				return usagef(cmd, "wants ids, or flags that say which terminals, and not both")
			case !many && len(args) == 0:
				return usagef(cmd, "%s, or --all", someTerms)
			}
			return where.look(ctx, func(p termPlace) error { return flags.stop(ctx, cmd, p, args) })
		}),
	}
	cmd.Flags().BoolVar(&flags.all, "all", false, "stop all terminals")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print each terminal as a line of JSON")
	return cmd
}

func (f *termStopFlags) stop(ctx context.Context, cmd *cobra.Command, p termPlace, said []string) error {
	infos, err := f.where.termsOf(ctx, cmd, p, said)
	if err != nil {
		return err
	}
	if len(said) == 0 {
		all, err := p.list(ctx)
		if err != nil {
			return err
		}
		filter := termListFlags{running: true, session: f.where.label()}
		infos = filter.filter(all)
	}
	const most = 16 // That are stopped at once.
	var (
		work sync.WaitGroup
		room = make(chan struct{}, most)
		now  = make([]terminal.Info, len(infos))
		errs = make([]error, len(infos))
	)
	for i, info := range infos {
		work.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			now[i], errs[i] = stopOne(ctx, p, info, len(said) > 0)
		})
	}
	work.Wait()
	for i, info := range now {
		if errs[i] != nil {
			continue
		}
		var err error
		if f.json {
			err = writeJSON(os.Stdout, info)
		} else {
			_, err = fmt.Printf("%s: %s\n", info.ID, describeTerm(info))
		}
		errs[i] = err
	}
	return errors.Join(errs...)
}

// stopOne stops a terminal, and returns what became of it.
func stopOne(ctx context.Context, p termPlace, info terminal.Info, named bool) (terminal.Info, error) {
	t, err := p.reach(ctx, info.ID)
	if err != nil {
		return info, err
	}
	defer t.free()
	if !t.live {
		if named {
			return info, fmt.Errorf("stop %q: %w: %s; limpet term forget removes it", info.ID, terminal.ErrEnded, endOf(t.info))
		}
		return t.info, nil
	}
	err = t.Close()
	if ctx.Err() != nil {
		return info, context.Cause(ctx)
	}
	if err != nil && !errors.Is(err, remote.ErrGone) && !errors.Is(err, terminal.ErrClosed) {
		return info, err
	}
	return t.ended(), nil
}

func termForgetCommand(where *termFlags) *cobra.Command {
	ended := false
	cmd := &cobra.Command{
		Use:        "forget [flags] [id...]",
		Aliases:    []string{"rm", "remove", "delete"},
		SuggestFor: []string{"prune", "clean"},
		Short:      "Remove terminals whose programs have ended, with their output",
		Long:       "Forget removes what is kept of terminals whose programs have ended. See limpet help term\nfor when that happens by itself.",
		Example:    "  limpet term forget psql\n  limpet term forget --ended",
		Args:       wants(0, math.MaxInt, someTerms),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if ended == (len(args) > 0) {
				return usagef(cmd, "%s, or --ended", someTerms)
			}
			return where.look(ctx, func(p termPlace) error {
				infos, err := where.termsOf(ctx, cmd, p, args)
				if err != nil {
					return err
				}
				if ended {
					if infos, err = p.list(ctx); err != nil {
						return err
					}
				}
				var errs []error
				for _, info := range infos {
					if ended && !info.State.Ended() {
						continue
					}
					if err := p.forget(ctx, info.ID); !ended || !errors.Is(err, terminal.ErrNotFound) {
						errs = append(errs, err)
					}
				}
				return errors.Join(errs...)
			})
		}),
	}
	cmd.Flags().BoolVar(&ended, "ended", false, "remove all that have ended")
	return cmd
}

func termResizeCommand(where *termFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "resize [flags] id COLUMNSxROWS",
		Short:   "Give a terminal another size",
		Long:    "Resize gives a terminal another size. The program gets a SIGWINCH.",
		Example: "  limpet term resize vim 132x50",
		Args:    wants(2, 2, oneTerm+", and COLUMNSxROWS"),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			size, err := parseSize(cmd, "size", args[1])
			if err != nil {
				return err
			}
			return where.with(ctx, cmd, args[0], func(t *reached) error { return t.Resize(size) })
		}),
	}
}
