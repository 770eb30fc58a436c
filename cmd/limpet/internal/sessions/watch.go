package sessions

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/wire"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal/screen"
)

func watchCommand(p Program) *cobra.Command {
	var on On
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "watch [flags] [name...]",
		Short: "Watch what runs in sessions",
		Long: `Watch prints each command that runs in sessions, what it prints, and how it ends, as it comes, until Ctrl-C: what an agent does by
limpet mcp --keep, for one. It begins with what the sessions remember, and changes nothing there. Without names it is about all sessions, also those that
are made later; on another machine about those that are there. Several sessions have their names in front of each line.

A line is shown when it is whole, as a terminal would show it in the end, and without colours. It says when a job ends, waits, or prints a
line that it is watched for, and when the program of a terminal ends; what else they print is not among it: see limpet jobs log --follow and limpet
term attach.

With --json it prints one object a line, an event, with text in base64.`,
		Example: "  limpet session watch\n  limpet session watch build",
		Args:    wantsNames(0, 1000, "wants the names of sessions, or none"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			place, leave, err := p.Place(ctx, on)
			if err != nil {
				return err
			}
			defer leave()
			var names []string
			for _, said := range args {
				one, err := find(ctx, cmd, place, on, said, true)
				if err != nil {
					return err
				}
				names = append(names, one.Record.Name)
			}
			err = p.watch(ctx, place, names, newWatched(os.Stdout, asJSON, len(names) == 1))
			if ended := p.Ended(ctx); ended != nil && ctx.Err() != nil {
				return ended
			}
			return err
		},
	}
	addOn(cmd, &on)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one object a line")
	return cmd
}

// watch watches sessions, of some names or, without, all of a place, until ctx ends or those of the names have ended.
func (p Program) watch(ctx context.Context, place keeper.Place, names []string, out *watched) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel(nil)
	follow := func(name string) error {
		k, err := place.Session(ctx, name, nil)
		if err != nil {
			return err
		}
		all.Go(func() {
			defer k.Disconnect()
			if err := out.follow(ctx, k); err != nil {
				cancel(err) // There is nobody to print for.
			}
		})
		return nil
	}
	if len(names) > 0 {
		for _, name := range names {
			if err := follow(name); err != nil {
				return err
			}
		}
		all.Wait()
		return causeOf(ctx)
	}
	var news <-chan struct{}
	if here, ok := place.(*keeper.Registry); ok {
		made, done, err := here.Made()
		if err != nil {
			return err
		}
		defer done()
		news = made
	}
	followed := make(map[string]bool) // by the ids of sessions: they are followed to another keeper
	for {
		list, err := place.List(ctx, false)
		if err != nil {
			return err
		}
		for _, one := range list {
			if one.Info == nil || followed[one.Record.SessionID()] {
				continue
			}
			followed[one.Record.SessionID()] = true
			if err := follow(one.Record.Name); err != nil && ctx.Err() == nil {
				p.Note("session %s: %v", one.Record.Name, err)
			}
		}
		select {
		case <-news:
		case <-ctx.Done():
			return causeOf(ctx)
		}
	}
}

// causeOf is why a context ended; nil if it did not.
func causeOf(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// watched makes lines of what is watched. Its methods are safe for concurrent use.
type watched struct {
	mu    sync.Mutex
	raw   func(e session.Event) error        // is given the events instead, if it is not nil
	line  func(name, text string) error      // takes a line about a session
	state func(name string, e session.Event) // if it is not nil, is told of events, too
	open  map[lineKey][]byte
}

// lineKey is that of a line that is not whole yet.
type lineKey struct {
	keeper  string
	command int64
	stderr  bool
}

// newWatched prints the lines. The name of a single one need not be said.
func newWatched(out io.Writer, asJSON, single bool) *watched {
	w := &watched{open: make(map[lineKey][]byte)}
	w.line = func(name, text string) error {
		if !single {
			text = name + " | " + text
		}
		_, err := fmt.Fprintln(out, text)
		return err
	}
	if asJSON {
		w.raw = func(e session.Event) error { return noun.JSON(out, e) }
	}
	return w
}

// follow prints the events of a session until that ends, or ctx does. The error is one of printing.
func (w *watched) follow(ctx context.Context, k *keeper.Kept) error {
	for seq := int64(0); ; {
		list, err := k.Events(ctx, seq)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, session.ErrClosed), errors.Is(err, wire.ErrGone):
			return w.say(k.Name(), "the session has ended")
		case err != nil:
			return w.say(k.Name(), "is not watched any more: "+noun.OneLine(err.Error()))
		}
		for _, one := range list {
			one.Session = k.Name() // Another machine may say anything.
			if seq > 0 && one.Seq > seq+1 {
				if err := w.say(one.Session, fmt.Sprintf("%d events are missing here: they came too fast", one.Seq-seq-1)); err != nil {
					return err
				}
			}
			seq = one.Seq
			if err := w.print(k.Record.ID, one); err != nil {
				return err
			}
		}
	}
}

// say prints a line about a session.
func (w *watched) say(name, text string) error {
	if w.raw != nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.line(name, "-- "+text)
}

// print prints an event.
func (w *watched) print(keeperID string, e session.Event) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.raw != nil {
		return w.raw(e)
	}
	if w.state != nil {
		w.state(e.Session, e)
	}
	key := lineKey{keeperID, e.Command, e.Stderr}
	switch e.Kind {
	case session.BeginEvent:
		for _, line := range typed(e.Dir, e.Script) {
			if err := w.line(e.Session, line); err != nil {
				return err
			}
		}
		if e.Cut > 0 {
			return w.line(e.Session, fmt.Sprintf("-- %d bytes more of the script are not shown", e.Cut))
		}
	case session.OutputEvent:
		text := append(w.open[key], e.Text...)
		delete(w.open, key)
		if e.Missed > 0 {
			if err := w.line(e.Session, fmt.Sprintf("-- %d bytes are missing here", e.Missed)); err != nil {
				return err
			}
		}
		for line := range bytes.Lines(text) {
			whole, ended := bytes.CutSuffix(line, []byte("\n"))
			if !ended && len(line) < longestLine {
				w.open[key] = bytes.Clone(line)
				break
			}
			if err := w.line(e.Session, screen.Redrawn(whole)); err != nil {
				return err
			}
		}
	case session.EndEvent:
		for _, stderr := range []bool{false, true} {
			key.stderr = stderr
			if rest := w.open[key]; len(rest) > 0 {
				delete(w.open, key)
				if err := w.line(e.Session, screen.Redrawn(rest)); err != nil {
					return err
				}
			}
		}
		if err := w.line(e.Session, "-- "+outcome(e)); err != nil {
			return err
		}
		for _, note := range e.Receipt.Lines() {
			if err := w.line(e.Session, "-- "+noun.OneLine(note)); err != nil {
				return err
			}
		}
	case session.NoticeEvent:
		if e.Notice != nil {
			return w.line(e.Session, "-- "+noun.OneLine(e.Notice.Text))
		}
	}
	return nil
}

// typed are the lines of a script, behind a prompt.
func typed(dir, script string) (lines []string) {
	prompt := noun.OneLine(dir) + " $ "
	for line := range strings.SplitSeq(strings.TrimRight(script, "\n"), "\n") {
		lines = append(lines, prompt+screen.Redrawn([]byte(line)))
		prompt = strings.Repeat(" ", ansi.StringWidth(noun.OneLine(dir))+1) + "> "
	}
	return lines
}

// longestLine bounds a line that is not whole, in bytes.
const longestLine = 64 << 10

// outcome is how a command has ended.
func outcome(e session.Event) string {
	text := fmt.Sprintf("exit %d", e.ExitCode)
	if e.Error != "" {
		text = noun.OneLine(e.Error)
	}
	digits := time.Millisecond
	if e.Elapsed > time.Second {
		digits = 100 * time.Millisecond
	}
	return fmt.Sprintf("%s, after %v", text, e.Elapsed.Round(digits))
}
