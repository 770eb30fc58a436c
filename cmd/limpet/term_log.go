package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal/screen"
)

type termLogFlags struct {
	where  *termFlags
	text   bool
	from   int64
	tail   int
	follow bool
	json   bool

	begun bool  // something was printed
	next  int64 // and this is where it goes on, if it has to be asked for again
}

func termLogCommand(where *termFlags) *cobra.Command {
	flags := termLogFlags{where: where}
	cmd := &cobra.Command{
		Use:        "log [flags] id",
		Aliases:    []string{"logs", "tail"},
		SuggestFor: []string{"follow", "cat", "output"},
		Short:      "Print what a program has printed on its terminal, or follow it",
		Long: `Log prints what is kept of the output of a program, byte for byte, with its escape
sequences; with --text, without them. What a program has drawn over is in it in the
order in which it came: term screen is for what there is to be seen.

With --follow, it goes on with what the program prints, until that ends; Ctrl-C ends limpet,
and not the program. To a terminal, what programs ask their terminals is left out.

With --json, each part of the output is a line of JSON, as text.`,
		Example: `  limpet term log --text --tail 50 psql
  limpet term log --follow build
  limpet term log --from -4096 psql`,
		Args: wants(1, 1, oneTerm),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := oneOf(cmd, "from", "tail"); err != nil {
				return err
			}
			if flags.tail < 0 {
				return usagef(cmd, "--tail %d: wants 0 or more", flags.tail)
			}
			tail := cmd.Flags().Changed("tail")
			return where.with(ctx, cmd, args[0], func(t *reached) error { return flags.print(ctx, t, tail) })
		}),
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&flags.text, "text", false, "leave escape sequences out")
	cmd.Flags().Int64Var(&flags.from, "from", 0, "print from the `N`-th byte on, counted from 0; from the end, if negative")
	cmd.Flags().IntVarP(&flags.tail, "tail", "n", 0, "print the last `N` lines (default: all that is kept)")
	cmd.Flags().BoolVarP(&flags.follow, "follow", "f", false, "go on with what the program prints, until it ends")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print lines of JSON")
	return cmd
}

func (f *termLogFlags) print(ctx context.Context, t *reached, tail bool) error {
	from := f.from
	switch {
	case f.begun: // The program that had the terminal is gone: the rest is in the log.
		from = f.next
	case tail:
		var err error
		if from, err = tailOf(t, f.tail); err != nil {
			return err
		}
	}
	plain := f.text || f.json
	to := follower{raw: !plain, at: from, print: f.printer()}
	v, err := t.follow(from)
	if err != nil {
		return err
	}
	defer v.Close() // It cannot fail.
	end := t.now().Bytes
	for at := from; f.follow || at < end; {
		c, err := v.Next(ctx)
		if stopped := gotSignal(ctx); stopped != nil {
			return exit(codeOf(stopped)) // That is how it is left.
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(to.flush(), err)
		}
		if !f.follow && c.Offset+int64(len(c.Data)) > end {
			c.Data = c.Data[:max(end-c.Offset, 0)]
		}
		if err := to.take(jobs.Chunk{Offset: c.Offset, Data: c.Data, Dropped: c.Missed}); err != nil {
			return err
		}
		at = c.Offset + int64(len(c.Data))
		f.begun, f.next = true, at
	}
	if err := to.flush(); err != nil {
		return err
	}
	if f.follow {
		f.where.console.notef("%s: %s", t.info.ID, describeTerm(t.ended()))
	}
	return nil
}

// printer prints to stdout. A person's terminal would answer what the program asks its
// own, as if it were typed.
func (f *termLogFlags) printer() func(chunkJSON) error {
	var filter *screen.QueryFilter
	if f.where.console.stdout.terminal && !f.text {
		filter = &screen.QueryFilter{}
	}
	return func(c chunkJSON) error {
		if f.text || f.json {
			c.Text = screen.PlainLines([]byte(c.Text))
		}
		if f.json {
			return writeJSON(os.Stdout, c)
		}
		if c.Dropped > 0 {
			f.where.console.notef("%d bytes are missing here, and not kept any more", c.Dropped)
		}
		text := []byte(c.Text)
		if filter != nil {
			text = filter.Filter(nil, text)
		}
		_, err := f.where.console.stdout.Write(text)
		return err
	}
}

// tailOf is the offset of the last lines of the output.
func tailOf(t *reached, lines int) (int64, error) {
	const most = 4 << 20 // That are looked through.
	info := t.now()
	c, err := t.Output(max(info.Bytes-most, 0), most)
	if err != nil || len(c.Data) == 0 {
		return info.Bytes, err
	}
	if lines == 0 {
		return c.Offset + int64(len(c.Data)), nil
	}
	end := len(bytes.TrimSuffix(c.Data, []byte("\n")))
	for ; lines > 0; lines-- {
		at := bytes.LastIndexByte(c.Data[:end], '\n')
		if at < 0 {
			return c.Offset, nil
		}
		end = at
	}
	return c.Offset + int64(end) + 1, nil
}
