// Package noun is what commands on things of a kind have in common: how they are told that a
// command line makes no sense, how one of several is named, and how a list looks.
package noun

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"
)

// UsageError says that the command line makes no sense. Nothing ran.
type UsageError struct {
	Command string // whose help to read
	Err     error
}

func (e *UsageError) Error() string {
	return fmt.Sprintf("%v; see %s --help", e.Err, e.Command)
}

func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a [*UsageError] of a command.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{Command: cmd.CommandPath(), Err: fmt.Errorf(format, args...)}
}

// Wants returns a check of the number of arguments.
func Wants(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usagef(cmd, "%s", what)
		case len(args) > most:
			return Usagef(cmd, "%s, got %q too", what, args[most])
		}
		return nil
	}
}

// Some lists names, but no more than a line or two.
func Some(names []string) string {
	const most = 8
	if len(names) > most {
		return strings.Join(names[:most], ", ") + fmt.Sprintf(" and %d more", len(names)-most)
	}
	return strings.Join(names, ", ")
}

// Table prints rows in aligned columns. The first row is the heading, if the caller wants one. Line breaks and
// control characters in a cell are replaced, so that a cell cannot break the table.
func Table(w io.Writer, rows ...[]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = OneLine(cell)
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

// OneLine is a text that moves no cursor.
func OneLine(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return '?'
	}, strings.TrimSpace(text))
}

// JSON prints a value as a line.
func JSON(w io.Writer, value any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(value)
}
