package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/picture"
	"github.com/limpet-sh/limpet/terminal/screen"
)

type termScreenFlags struct {
	where      *termFlags
	format     string
	output     string
	scrollback bool
}

var screenFormats = []string{"text", "ansi", "json", "svg", "png"}

func termScreenCommand(where *termFlags) *cobra.Command {
	flags := termScreenFlags{where: where}
	cmd := &cobra.Command{
		Use:        "screen [flags] id",
		SuggestFor: []string{"capture", "snapshot", "screenshot"},
		Short:      "Print what is on the screen of a terminal",
		Long: `Screen prints what a person would see on the terminal now, or at the end of the
program: as text, with escape sequences for its colors (ansi), as JSON with all of it, or
as a picture (svg, png). If somebody is asked there for a password, a line or a key, stderr
says so.`,
		Example: `  limpet term screen vim
  limpet term screen --scrollback bash | tail -100
  limpet term screen --format json vim | jq .cursor
  limpet term screen --format png -o vim.png vim`,
		Args: wants(1, 1, oneTerm),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			return where.with(ctx, cmd, args[0], flags.print)
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&flags.format, "format", screenFormats[0], "print it as `FORMAT`: "+strings.Join(screenFormats, ", "))
	cmd.Flags().StringVarP(&flags.output, "output", "o", "", "write it to a `FILE`, which is replaced")
	cmd.Flags().BoolVar(&flags.scrollback, "scrollback", false, "print the lines that have left the screen at its top, too")
	return cmd
}

func (f *termScreenFlags) check(cmd *cobra.Command) error {
	switch {
	case !slices.Contains(screenFormats, f.format):
		return usagef(cmd, "--format %q: there are %s", f.format, strings.Join(screenFormats, ", "))
	case f.scrollback && f.format != "text" && f.format != "json":
		return usagef(cmd, "--scrollback goes with --format text or json: the lines are kept as text")
	case cmd.Flags().Changed("output") && f.output == "":
		return emptyPath(cmd, "output")
	case f.format == "png" && f.output == "" && term.IsTerminal(int(os.Stdout.Fd())):
		return usagef(cmd, "a png is nothing for a terminal: name a file by -o, or send stdout to one")
	}
	return nil
}

// screenJSON is what "term screen --format json" prints.
type screenJSON struct {
	ID         string            `json:"id"`
	State      terminal.State    `json:"state"`
	Waits      *terminal.Waiting `json:"waits,omitempty"` // as in term info --json
	Offset     int64             `json:"offset"`          // of the output: what is before it is in the picture
	Size       terminal.Size     `json:"size"`
	Cursor     cursorJSON        `json:"cursor"`
	Title      string            `json:"title"`
	Alternate  bool              `json:"alternate"` // the screen of full-screen programs
	Text       []string          `json:"text"`      // the lines, all of them
	Scrollback []string          `json:"scrollback,omitempty"`
	Screen     *screen.Screen    `json:"screen"` // with colors
}

type cursorJSON struct {
	Col     int  `json:"col"`
	Row     int  `json:"row"`
	Visible bool `json:"visible"`
}

func (f *termScreenFlags) print(t *reached) (err error) {
	s, err := t.Screen()
	if err != nil {
		return err
	}
	var lines []string
	if f.scrollback {
		if lines, err = t.Scrollback(); err != nil {
			return err
		}
	}
	var to io.Writer = os.Stdout
	if f.output != "" {
		file, err := os.Create(f.output)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		to = file
	}
	switch f.format {
	case "ansi":
		_, err = to.Write(append(s.ANSI(), "\x1b[m"+fmt.Sprintf("\x1b[%d;1H\n", s.Rows)...))
	case "svg":
		err = picture.SVG(to, s.Screen)
	case "png":
		err = picture.PNG(to, s.Screen)
	case "json":
		out := screenJSON{
			ID: t.info.ID, State: t.info.State, Waits: t.info.Waits, Offset: s.Offset, Size: s.Size, Title: s.Title, Alternate: s.Alternate,
			Cursor: cursorJSON{s.Cursor.Col, s.Cursor.Row, s.Cursor.Visible}, Scrollback: lines, Screen: s.Screen,
		}
		for row := range s.Cells {
			out.Text = append(out.Text, s.Line(row))
		}
		err = writeJSON(to, out)
	default:
		_, err = io.WriteString(to, strings.Join(append(lines, s.Text()), "\n")+"\n")
	}
	if text := asksText(t.info); text != "" && err == nil && f.format != "json" {
		f.where.console.notef("%s: %s", t.info.ID, strings.TrimPrefix(text, "; "))
	}
	return err
}
