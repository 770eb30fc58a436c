package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/interrupt"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
)

func jobsCommand() *cobra.Command {
	var where registryFlags
	cmd := &cobra.Command{
		Use:     "jobs",
		Aliases: []string{"job"},
		Short:   "Run commands in the background, which outlive limpet",
		Long: `Jobs are commands that run in the background, also when limpet has ended. Each has
an id, which jobs start prints; its output is kept, as is how it ended. A part of the
id will do where it means one job: its beginning, as in make of job-make-x3k9q2ab,
or its end.

With --session NAME they are those of a session that is kept (see limpet help session): a
job starts in its directory, with its environment, and ends when the session is closed. With --on
TARGET the session is on another machine (see limpet help run).

Else the jobs are in a directory, --state. One program at a time owns it, and while that
is another one (a server that uses the library, say) jobs can be looked at, but not
changed: list, log and wait always work, and poll but for what is new.

Half an hour after its end, or when 64 others have ended after it, a job is forgotten.
See limpet help exit-codes for the exit codes.`,
		Example: `  id=$(limpet jobs start -- make -j4)
  limpet jobs list
  limpet jobs log --follow "$id"
  limpet jobs wait --timeout 10m "$id" && echo fine
  limpet jobs stop "$id"
  limpet jobs -s build start 'make watch'`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	where.add(cmd)
	cmd.AddCommand(
		jobsStartCommand(&where), jobsListCommand(&where), jobsPollCommand(&where), jobsLogCommand(&where), jobsWaitCommand(&where),
		jobsWriteCommand(&where), jobsSubmitCommand(&where), jobsCloseCommand(&where), jobsResizeCommand(&where),
		jobsStopCommand(&where), jobsForgetCommand(&where), jobsHistoryCommand(&where), helpCommand(),
	)
	return cmd
}

// registryFlags say where the jobs are: in a directory, or in a session that is kept.
type registryFlags struct {
	dir     string
	session string
	on      sessions.On
	kept    *keeper.Registry // of this machine; nil if they are in no session that is kept here
	far     *host.Host       // another machine; nil if they are in no session that is kept on one
	at      keeper.Place     // where the session is kept; nil if they are in none
	console *console
}

func (f *registryFlags) add(cmd *cobra.Command) {
	f.addFlags(cmd, "jobs")
}

func (f *registryFlags) addFlags(cmd *cobra.Command, things string) {
	flags := cmd.PersistentFlags()
	flags.StringVarP(&f.session, "session", "s", "", "the "+things+" of the session `NAME`, as limpet run -s has it; . is that of this project. With --state: those there that belong to it")
	f.on.AddPersistent(cmd, "with --session, the "+things+" of a session on another machine, which is reached by `TARGET`; see limpet help run")
	flags.StringVar(&f.dir, "state", "", "the `DIR` of the "+things+" (default: limpet/"+things+" in XDG_STATE_HOME, or in ~/.local/state)")
}

// label is the session whose jobs are wanted from a directory (--session with --state); empty means all of them.
func (f *registryFlags) label() string {
	if f.at != nil {
		return ""
	}
	return f.session
}

// where checks the flags.
func (f *registryFlags) where(cmd *cobra.Command) error {
	state, named := cmd.Flags().Changed("state"), cmd.Flags().Changed("session")
	switch {
	case f.on.String() != "" && state:
		return usagef(cmd, "--state cannot go with --on")
	case f.on.String() != "" && !named:
		return usagef(cmd, "--on wants a session: name it by --session")
	case state && f.dir == "":
		return emptyPath(cmd, "state")
	case named && f.session == "":
		return usagef(cmd, `--session "": wants a name; is a variable empty?`)
	case state:
		// A directory that does not exist has no jobs in it, which is no error; jobs start creates it.
		if err := usable(f.dir, true, unix.X_OK); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return usagef(cmd, "--state %q: %w", f.dir, err)
		}
	case named:
		var err error
		if f.session, err = sessionNamed(cmd, f.session); err != nil {
			return err
		}
	}
	return nil
}

// open finds the place of the session, if there is one. Call leave.
func (f *registryFlags) open(ctx context.Context, cmd *cobra.Command) (leave func(), err error) {
	if f.session == "" || cmd.Flags().Changed("state") {
		return func() {}, nil
	}
	place, leave, err := program(f.console.notef).Place(ctx, f.on)
	if err != nil {
		return nil, err
	}
	f.at = place
	f.kept, _ = place.(*keeper.Registry) // Nil, as said.
	f.far, _ = place.(*host.Host)        // As above.
	return leave, nil
}

// run makes a RunE of a function that wants a context which ends with a signal.
func (f *registryFlags) run(do func(ctx context.Context, cmd *cobra.Command, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		f.console = newConsole()
		if err := f.where(cmd); err != nil {
			return err
		}
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		leave, err := f.open(ctx, cmd)
		if err != nil {
			return withSignal(ctx, err)
		}
		defer leave()
		return do(ctx, cmd, args)
	}
}

// inSession calls do with the jobs of the kept session, and reports true. If the session's keeper is not running but has
// left jobs behind, it sets dir to their directory, which no program owns then, and reports false.
func (f *registryFlags) inSession(ctx context.Context, do func(jobs.Handle) error) (done bool, err error) {
	if f.at == nil {
		return false, nil
	}
	kept, err := f.at.Session(ctx, f.session, nil)
	if errors.Is(err, session.ErrNotFound) && f.kept != nil {
		f.dir = filepath.Join(f.kept.StateDir(f.session), "jobs")
		if _, none := os.Stat(f.dir); none == nil {
			return false, nil
		}
	}
	if err != nil {
		return true, withSignal(ctx, f.noSession(err))
	}
	defer kept.Disconnect()
	list, err := kept.Jobs()
	if err != nil {
		return true, err
	}
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(settling, kept.Disconnect) }) // As endsByClose: most calls take no context.
	defer stop()
	if err = do(list); errors.Is(err, session.ErrClosed) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return true, err
}

// noSession says what to do about a session that is not there.
func (f *registryFlags) noSession(err error) error {
	if !errors.Is(err, session.ErrNotFound) {
		return err
	}
	on := ""
	if f.far != nil {
		on = " --on " + quoted([]string{f.on.String()})
	}
	return fmt.Errorf("%w; limpet run -s %s%s true makes one", err, f.session, on)
}

// look opens the jobs of whoever owns them, to be looked at.
func (f *registryFlags) look(ctx context.Context, opts jobs.Options, do func(jobs.Handle) error) error {
	if done, err := f.inSession(ctx, do); done {
		return err
	}
	opts.ReadOnly = true
	opts.Logger = f.console.logger()
	r, err := jobs.Open(f.dir, &opts)
	if err != nil {
		return err
	}
	return errors.Join(do(r), r.Close())
}

// change opens the jobs as their owner, in turn with other commands that do so.
func (f *registryFlags) change(ctx context.Context, opts jobs.Options, do func(jobs.Handle) error) error {
	if done, err := f.inSession(ctx, do); done {
		return err
	}
	opts.Brief = true
	opts.Logger = f.console.logger()
	if opts.MaxFinished == 0 {
		opts.MaxFinished = math.MaxInt // Who looks, or stops one, forgets none of the others.
	}
	opts.Interrupts = interrupt.New()
	stop := context.AfterFunc(ctx, func() { opts.Interrupts.Stop(context.Cause(ctx)) })
	defer stop()
	r, err := jobs.Open(f.dir, &opts)
	if err != nil {
		return cmp.Or(gotSignal(ctx), err)
	}
	return errors.Join(do(r), r.Close())
}
