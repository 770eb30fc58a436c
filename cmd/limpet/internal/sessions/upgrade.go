package sessions

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/shell"
)

func upgradeCommand(p Program) *cobra.Command {
	var all, noWait, force bool
	var on On
	cmd := &cobra.Command{
		Use:   "upgrade [flags] name... | --all",
		Short: "Have sessions kept by this limpet",
		Long: `Upgrade replaces the keeper of a session, which is the limpet that made it, by one of this
limpet. The session has a new bash with the state of the old one then: directory, variables, functions,
aliases, options, traps and umask, and its checkpoints. Who uses it does not notice.

It waits for the command that runs. If the new keeper does not start, or its shell is not as it should be,
the session goes on as it was. What would be lost is said, and nothing is done without --force: background
processes, commands that became jobs, terminals that run, open descriptors. Other jobs run on. What its last
commands have printed is forgotten.

A session that is kept by this version already is left alone without --force.

With --on the new keeper is of the limpet over there, as it is in the PATH there or is copied there now. If the
connection is lost meanwhile the session is as before or upgraded: limpet session info says which.`,
		Example: `  limpet session upgrade build
  limpet session upgrade --all --no-wait
  limpet session upgrade --on ssh://build-box build`,
		Args: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return noun.Usagef(cmd, "wants the names of sessions, or --all")
			}
			return checkNames(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			r, leave, err := p.newest(ctx, on, force)
			if err != nil {
				return err
			}
			defer leave()
			if all {
				list, err := r.List(ctx, false)
				if err != nil {
					return err
				}
				for _, one := range list {
					args = append(args, one.Record.Name)
				}
			}
			var failed error
			for _, said := range args {
				one, err := find(ctx, cmd, r, on, said, true)
				if err == nil {
					err = p.upgrade(ctx, r, on, one.Record.Name, keeper.Upgrade{NoWait: noWait, Force: force})
				}
				failed = errors.Join(failed, err)
				if ctx.Err() != nil {
					break
				}
			}
			return failed
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&all, "all", "a", false, "upgrade all sessions")
	cmd.Flags().BoolVar(&noWait, "no-wait", false, "fail if a command runs in the session, with exit code 75")
	cmd.Flags().BoolVar(&force, "force", false, "also if something is lost, and if the version is the same")
	addOn(cmd, &on)
	return cmd
}

// newest is Place, where the limpet that answers is one that a connection finds or brings now: one that is shared may have been
// made by a limpet that was replaced since. With force that is not to be told by its version.
func (p Program) newest(ctx context.Context, on On, force bool) (place keeper.Place, leave func(), err error) {
	if on.target != "" && !force {
		place, leave, err = p.Place(ctx, on)
		if err != nil || place.UpgradesTo() == p.Version {
			return place, leave, err
		}
		leave()
	}
	if on.target == "" {
		return p.Place(ctx, on)
	}
	opts := p.HostOptions(on.agents)
	opts.Share = false
	h, err := p.dial(ctx, on.target, opts)
	if err != nil {
		return nil, nil, err
	}
	return h, func() { _ = h.Disconnect() }, nil // Nothing temporary was made.
}

// upgrade upgrades a session, and says what was done.
func (p Program) upgrade(ctx context.Context, r keeper.Place, on On, name string, how keeper.Upgrade) error {
	k, err := r.Session(ctx, name, nil)
	if err != nil {
		return err
	}
	defer k.Disconnect()
	if h, ok := r.(*host.Host); ok && !h.Keeps(k.Record.Spec) {
		whole, err := p.DialWhole(ctx, on)
		if err != nil {
			return err
		}
		defer func() { _ = whole.Disconnect() }() // Nothing temporary was made.
		r = whole
	}
	was := k.Record.Version
	if was == r.UpgradesTo() && !how.Force {
		short, _ := apart(was, "")
		_, err := fmt.Printf("%s: is kept by limpet %s already\n", name, noun.OneLine(short)) // Another machine may have said it.
		return err
	}
	lost, err := r.Upgrade(ctx, k, how)
	if errors.Is(err, shell.ErrBusy) {
		if info, failed := k.Info(ctx); failed == nil && info.Running != "" {
			err = fmt.Errorf("%w: it runs %s", err, Held(info))
		}
	}
	if err != nil {
		return err
	}
	from, to := apart(was, r.UpgradesTo())
	_, err = fmt.Printf("%s: upgraded from limpet %s to %s\n", name, noun.OneLine(from), noun.OneLine(to))
	if len(lost) > 0 {
		p.Note("session %q has lost %s", name, strings.Join(lost, ", "))
	}
	return err
}

// apart returns two versions without what they were built by, where they differ without that.
func apart(one, other string) (string, string) {
	a, _, _ := strings.Cut(one, " ")
	b, _, _ := strings.Cut(other, " ")
	if a == b {
		return one, other
	}
	return a, b
}
