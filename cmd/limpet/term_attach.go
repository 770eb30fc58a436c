package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
	"github.com/limpet-sh/limpet/terminal/screen"
)

type termAttachFlags struct {
	where     *termFlags
	readOnly  bool
	detachKey string
	noResize  bool
	replay    bool
}

const (
	defaultDetachKey = `ctrl-\`
	noDetachKey      = "none"
)

func termAttachCommand(where *termFlags) *cobra.Command {
	flags := termAttachFlags{where: where}
	cmd := &cobra.Command{
		Use:        "attach [flags] id",
		SuggestFor: []string{"connect", "open", "fg"},
		Short:      "Sit down at a terminal",
		Long: `Attach shows a terminal on yours, and types what you type, until the program ends or
you press the detach key, Ctrl-\: then the program runs on. The terminal gets the size of
yours, and that of whoever attaches or resizes last, if there are several.

Of a program that has ended it shows the last screen; with --replay, all output that
is kept, as fast as it goes.

The exit code is that of the program if it has ended, and 0 if you have detached.`,
		Example: `  limpet term attach psql
  limpet term attach --read-only build
  limpet term attach --detach-key ctrl-] vim`,
		Args: wants(1, 1, oneTerm),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if _, err := detachByte(cmd, flags.detachKey); err != nil {
				return err
			}
			return flags.run(ctx, cmd, args[0])
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&flags.readOnly, "read-only", false, "look, and type nothing; Ctrl-C detaches, too")
	cmd.Flags().StringVar(&flags.detachKey, "detach-key", defaultDetachKey, "the `KEY` to detach by: Ctrl and another one, or "+noDetachKey)
	cmd.Flags().BoolVar(&flags.noResize, "no-resize", false, "leave the size of the terminal as it is")
	cmd.Flags().BoolVar(&flags.replay, "replay", false, "of a program that has ended, show all that is kept of its output")
	return cmd
}

// detachByte is what the key sends; -1 if there is none.
func detachByte(cmd *cobra.Command, name string) (int, error) {
	if strings.EqualFold(name, noDetachKey) {
		return -1, nil
	}
	key, err := keys.Key(name)
	if err != nil {
		return -1, usagef(cmd, "--detach-key %q: %s; or %s", name, strings.TrimPrefix(err.Error(), "keys: "), noDetachKey)
	}
	if b := key.Encode(keys.Modes{}); len(b) == 1 && b[0] < ' ' && !strings.ContainsRune("\r\t\x1b", rune(b[0])) {
		return int(b[0]), nil
	}
	return -1, usagef(cmd, `--detach-key %q: wants Ctrl and another key, as in ctrl-\ or ctrl-], but none that Enter, Tab or Esc send; or %s`, name, noDetachKey)
}

// onTerminalOnly refuses to attach what is no terminal.
func onTerminalOnly(cmd *cobra.Command) error {
	for _, f := range []struct {
		file *os.File
		name string
	}{{os.Stdin, "stdin"}, {os.Stdout, "stdout"}} {
		if !term.IsTerminal(int(f.file.Fd())) {
			return usagef(cmd, "%s is no terminal, and that is what attach shows one on: use limpet term send to type, and term screen or term log --follow to look", f.name)
		}
	}
	return nil
}

func (f *termAttachFlags) run(ctx context.Context, cmd *cobra.Command, said string) error {
	if err := onTerminalOnly(cmd); err != nil {
		return err
	}
	detach, err := detachByte(cmd, f.detachKey)
	if err != nil {
		return err
	}
	code := 0
	err = f.where.with(ctx, cmd, said, func(t *reached) (err error) {
		if !t.live {
			code = codeOfTerm(t.info)
			return f.past(t)
		}
		if t.info.ID == os.Getenv(environ.TerminalVar) {
			return usagef(cmd, "this is %s already: it would show itself to itself, without an end", t.info.ID)
		}
		code, err = (&attachment{flags: f, t: t, detach: detach, out: os.Stdout}).run(ctx)
		return err
	})
	if err != nil {
		return err
	}
	return exit(code)
}

// past shows what is left of a program.
func (f *termAttachFlags) past(t *reached) error {
	if f.replay {
		var filter screen.QueryFilter
		c, err := t.Output(0, int(t.info.Bytes-t.info.Kept))
		if err != nil {
			return err
		}
		fd := int(os.Stdout.Fd())
		before, err := term.MakeRaw(fd) // It is shown as it is: a newline is no more than that.
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(append(filter.Flush(filter.Filter(nil, c.Data)), leave+"\r\n"...))
		if err := errors.Join(err, term.Restore(fd, before)); err != nil {
			return err
		}
	} else {
		s, err := t.Screen()
		if err != nil {
			return err
		}
		if _, err := fmt.Print(lastScreen(s.Screen, terminalSize(os.Stdout))); err != nil {
			return err
		}
	}
	_, err := fmt.Printf("[%s: %s]\n", t.info.ID, endOf(t.info))
	return err
}

// lastScreen paints a screen, and leaves the cursor below it.
func lastScreen(s *screen.Screen, size terminal.Size) string {
	last := s.Rows
	for last > 0 && s.Line(last-1) == "" {
		last--
	}
	plain := *cropped(s, size)
	plain.Alternate, plain.Modes, plain.Title = false, screen.Modes{}, "" // It is to stay, and nobody uses it any more.
	return strings.Repeat("\n", size.Rows) + string(plain.ANSI()) + leave + fmt.Sprintf("\x1b[%d;1H\r\n", max(min(last, size.Rows), 1))
}

// cropped is the part of a screen that fits into a size.
func cropped(s *screen.Screen, size terminal.Size) *screen.Screen {
	if s.Cols <= size.Cols && s.Rows <= size.Rows {
		return s
	}
	cut := *s
	cut.Size = terminal.Size{Cols: min(s.Cols, size.Cols), Rows: min(s.Rows, size.Rows)}
	cut.Cells = make([][]screen.Cell, cut.Rows)
	for row := range cut.Cells {
		cut.Cells[row] = s.Cells[row][:cut.Cols]
	}
	cut.Cursor.Col, cut.Cursor.Row = min(s.Cursor.Col, cut.Cols-1), min(s.Cursor.Row, cut.Rows-1)
	return &cut
}
