package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/internal/private"
	"github.com/limpet-sh/limpet/terminal"
)

type termRecordFlags struct {
	where   *termFlags
	options terminal.RecordOptions
	force   bool
	json    bool
}

func termRecordCommand(where *termFlags) *cobra.Command {
	flags := termRecordFlags{where: where}
	cmd := &cobra.Command{
		Use:   "record [flags] id [file]",
		Short: "Record a terminal, for asciinema and others to play",
		Long: `Record writes what the program prints to a new file, as asciicast v2, from now on until the
program ends or you press Ctrl-C: what was written then can be played. The file is ID.cast
if none is named, and - is stdout. What was printed before is in it with --from-start, as
far as it is kept; of a program that has ended, that is all there is. With --on, a connection that
is lost is dialled again; a marker in the recording says where, and the screen is painted anew.

With --json, it prints a line of JSON about the recording.`,
		Example: `  limpet term record psql demo.cast
  limpet term record --from-start vim - | asciinema play -
  limpet term record --title 'How to' --force bash demo.cast`,
		Args: wants(1, 2, oneTerm+", and perhaps a file"),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			file := ""
			if len(args) > 1 {
				file = args[1]
			}
			switch {
			case len(args) > 1 && file == "":
				return usagef(cmd, `"" is no file; is a variable empty?`)
			case file == "-" && flags.json:
				return usagef(cmd, "--json and a recording do not both go to stdout: name a file")
			case file == "-" && term.IsTerminal(int(os.Stdout.Fd())):
				return usagef(cmd, "stdout is a terminal: name a file, or send it to a program, as in limpet term record ID - | asciinema play -")
			}
			return where.with(ctx, cmd, args[0], func(t *reached) error { return flags.record(ctx, cmd, t, file) })
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&flags.options.FromStart, "from-start", false, "begin with what is kept of the output")
	cmd.Flags().StringVar(&flags.options.Title, "title", "", "the `TITLE` of the recording (default: the command)")
	cmd.Flags().BoolVar(&flags.force, "force", false, "replace the file if there is one")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print a line of JSON")
	return cmd
}

// recordedJSON is what "term record --json" prints.
type recordedJSON struct {
	ID   string `json:"id"`
	File string `json:"file"`
	terminal.Recorded
	TookMS float64 `json:"took_ms"`
}

func (f *termRecordFlags) record(ctx context.Context, cmd *cobra.Command, t *reached, path string) error {
	if t.info.State.Ended() {
		f.options.FromStart = true // Nothing else comes.
	}
	began := time.Now()
	if path == "-" {
		done, err := t.Record(ctx, os.Stdout, f.options)
		if stopped := gotSignal(ctx); stopped != nil {
			err = nil
		}
		if err == nil {
			f.where.console.notef("%s", f.line(t, "stdout", done, time.Since(began)))
		}
		return err
	}
	if path == "" {
		path = t.info.ID + ".cast"
	}
	const mode = 0o600 // What was typed and seen is nobody else's business.
	file, err := private.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	made := err == nil
	if errors.Is(err, fs.ErrExist) && f.force {
		if file, err = os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
			if st, err := file.Stat(); err == nil && st.Mode().IsRegular() {
				_ = file.Chmod(mode) // It may be somebody else's, who lets us write.
			}
		}
	}
	if errors.Is(err, fs.ErrExist) {
		return usagef(cmd, "%q: there is such a file; name another one, or replace it by --force", path)
	}
	if err != nil {
		return err
	}
	if !f.json && !t.info.State.Ended() {
		f.where.console.notef("recording %s to %s, until the program ends or Ctrl-C", t.info.ID, path)
	}
	done, err := t.Record(ctx, file, f.options)
	if stopped := gotSignal(ctx); stopped != nil {
		err = nil // That is how it is ended.
	}
	if err = errors.Join(err, file.Close()); err != nil {
		if st, statErr := os.Lstat(path); made && statErr == nil && st.Mode().IsRegular() && st.Size() == 0 {
			_ = os.Remove(path) // Best effort: nothing is in it.
			return err
		}
		return &lostError{fmt.Errorf("recording to %s: %w; what was written before can be played", path, err)}
	}
	took := time.Since(began)
	if f.json {
		return writeJSON(os.Stdout, recordedJSON{t.info.ID, path, done, milliseconds(took)})
	}
	_, err = io.WriteString(os.Stdout, f.line(t, path, done, took)+"\n")
	return err
}

func (f *termRecordFlags) line(t *reached, to string, done terminal.Recorded, took time.Duration) string {
	text := fmt.Sprintf("%s: recorded to %s: %d bytes of output, in %v", t.info.ID, to, done.Bytes, age(took))
	if done.Missed > 0 {
		text += fmt.Sprintf("; %d bytes are missing, and a marker says where", done.Missed)
	}
	if done.Gaps > 0 {
		text += fmt.Sprintf("; the connection was lost %d times, and a marker says where", done.Gaps)
	}
	return text
}
