package sessions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/audit"
	"github.com/limpet-sh/limpet/session"
)

// WatchCommand is limpet watch.
func WatchCommand(p Program) *cobra.Command {
	var on On
	cmd := &cobra.Command{
		Use:   "watch [flags] [file]",
		Short: "Look on, in a terminal, while agents and others work",
		Long: `Watch fills your terminal with what runs in the sessions of this machine, one at a time, as it comes, and changes nothing there:
what an agent does by limpet mcp --keep, for one. Each session has a page, with the commands, what they print, and how they end.
A * is behind the name of one that has something new.

  Tab, n, →    the next session       1 to 9   that session
  p, ←         the one before         q        leave
  ↑ ↓, PgUp PgDn, g, G                scroll; at the end it follows

With a FILE, or a directory, that limpet writes by --audit it shows that record, from its beginning, and follows it: of a directory
the latest file and those after it.

Where stdout is no terminal, or for some sessions alone, use limpet session watch; in a browser, limpet serve. What jobs and terminals print is not among it.`,
		Example: "  limpet watch\n  limpet watch ~/audit.jsonl",
		Args:    noun.Wants(0, 1, "wants at most one file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) {
				return noun.Usagef(cmd, "it wants a terminal to fill: use limpet session watch, which prints lines")
			}
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			err := p.look(ctx, cmd, on, args)
			if ended := p.Ended(ctx); ended != nil && ctx.Err() != nil {
				return ended
			}
			return err
		},
	}
	addOn(cmd, &on)
	return cmd
}

// look shows sessions, or a record, until the person leaves, or ctx ends.
func (p Program) look(ctx context.Context, cmd *cobra.Command, on On, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shows := newScreens("There is no session yet. limpet run -s NAME 'COMMAND' makes one.")
	var full atomic.Bool // The terminal is: nothing else is printed there.
	note := p.Note
	p.Note = func(format string, args ...any) {
		if full.Load() {
			_ = shows.line("limpet", "-- "+noun.OneLine(fmt.Sprintf(format, args...))) // It cannot fail.
		} else {
			note(format, args...)
		}
	}
	var source func() error
	if len(args) > 0 {
		if on.String() != "" {
			return noun.Usagef(cmd, "a file is one of this machine: leave out --on")
		}
		if _, err := os.Stat(args[0]); err != nil {
			return err
		}
		shows.empty = "Nothing was written down yet."
		r := recorded{shows, make(map[string][]running)}
		source = func() error {
			return audit.Follow(ctx, args[0], r.entry, func(err error) { _ = shows.line("limpet", "-- "+noun.OneLine(err.Error())) }) // It cannot fail.
		}
	} else {
		place, leave, err := p.Place(ctx, on)
		if err != nil {
			return err
		}
		defer leave()
		w := newWatched(nil, false, true)
		w.line, w.state = shows.line, shows.event
		source = func() error { return p.watch(ctx, place, nil, w) }
	}
	full.Store(true)
	defer full.Store(false)
	ended := make(chan error, 1)
	go func() {
		defer cancel() // What went wrong is said, and not only to be seen.
		ended <- source()
	}()
	err := shows.show(ctx, os.Stdin, os.Stdout)
	cancel()
	if other := <-ended; err == nil && !errors.Is(other, context.Canceled) {
		err = other
	}
	return err
}

// event keeps what a session does.
func (s *screens) event(name string, e session.Event) {
	switch e.Kind {
	case session.BeginEvent:
		s.state(name, firstLine(e.Script)+" since "+e.Time.Local().Format(time.TimeOnly))
	case session.EndEvent:
		s.state(name, noun.OneLine(e.Dir))
	}
}
