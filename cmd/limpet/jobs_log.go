package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/jobs"
)

type logFlags struct {
	where        *registryFlags
	head, tail   int
	line, offset int64
	lines        int
	bytes        byteSize
	search       string
	follow       bool
	plain, json  bool
	given        func(flag string) bool
}

func jobsLogCommand(where *registryFlags) *cobra.Command {
	flags := logFlags{where: where, bytes: jobs.DefaultLogBytes}
	cmd := &cobra.Command{
		Use:        "log [flags] id",
		Aliases:    []string{"logs", "tail"},
		SuggestFor: []string{"attach", "follow", "cat", "output"},
		Short:      "Print a part of a job's output, or search or follow it",
		Long: `Log prints the last 100 lines of what a job has printed, or another part of it. Lines
are counted from 1, and bytes from 0, also when what comes before is not kept any
more. It changes nothing: what is new to jobs poll is so afterwards.

With --follow, it goes on with what the job prints, until that ends; Ctrl-C ends limpet,
and not the job. If the job waits for what is typed on its terminal, stderr says so. With --search, it prints the lines that match, with their numbers
before them, and the exit code is 1 if there are none.

With --json, it prints a line of JSON: the part, or what was found. Together with
--follow, each line of JSON has one or more lines of output.`,
		Example: `  limpet jobs log make
  limpet jobs log --follow --tail 0 make
  limpet jobs log --line 200 --lines 50 make
  limpet jobs log --search 'error|FAIL' make
  limpet jobs log --offset -4096 make`,
		Args: wants(1, 1, oneJob),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			return where.look(ctx, jobs.Options{}, func(r jobs.Handle) error {
				id, err := idOf(cmd, r, args[0])
				switch {
				case err != nil:
					return err
				case flags.follow:
					return flags.followed(ctx, r, id)
				case flags.search != "":
					return flags.found(r, id)
				}
				return flags.part(r, id)
			})
		}),
	}
	flags.add(cmd)
	return cmd
}

func (f *logFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVarP(&f.tail, "tail", "n", jobs.DefaultLogLines, "print the last `N` lines")
	flags.IntVar(&f.head, "head", 0, "print the first `N` lines that are kept")
	flags.Int64Var(&f.line, "line", 0, "print from the `N`-th line on")
	flags.IntVar(&f.lines, "lines", jobs.DefaultLogLines, "print `N` lines, with --line, or that match, with --search")
	flags.Int64Var(&f.offset, "offset", 0, "print from the `N`-th byte on, counted from 0; from the end, if negative")
	flags.Var(&f.bytes, "bytes", "print so many `BYTES`, with --offset, as in 65536 or 64KiB")
	flags.StringVar(&f.search, "search", "", "print the lines that match `REGEXP` (RE2), from --offset on")
	flags.BoolVarP(&f.follow, "follow", "f", false, "go on with what the job prints, until it ends")
	flags.BoolVar(&f.plain, "plain", false, "leave escape sequences out")
	flags.BoolVar(&f.json, "json", false, "print lines of JSON")
}

// check refuses what does not go together: each is a part of its own.
func (f *logFlags) check(cmd *cobra.Command) error {
	f.given = cmd.Flags().Changed
	if f.given("search") {
		if err := matchable(cmd, "search", f.search); err != nil {
			return err
		}
		if f.offset < 0 {
			return usagef(cmd, "--offset %d: with --search, it counts from the beginning", f.offset)
		}
	}
	for _, ways := range [][]string{
		{"tail", "head", "line", "offset"}, {"follow", "search", "head", "line", "bytes"}, {"follow", "lines"},
		{"lines", "tail"}, {"lines", "head"}, {"bytes", "lines"}, {"bytes", "tail"}, {"bytes", "head"}, {"bytes", "line"},
		{"search", "tail"},
	} {
		if err := oneOf(cmd, ways...); err != nil {
			return err
		}
	}
	if f.given("lines") && f.given("offset") && !f.given("search") {
		return usagef(cmd, "--offset and --lines do not go together, but for --search: bytes are counted by --bytes")
	}
	if f.follow && f.tail == 0 {
		return positive(cmd, "lines")
	}
	return positive(cmd, "tail", "head", "line", "lines")
}

// part prints the part that is asked for.
func (f *logFlags) part(r jobs.Handle, id string) error {
	o := jobs.LogOptions{Head: f.head, Line: f.line, Plain: f.plain}
	switch {
	case f.given("offset") || f.given("bytes"):
		o.Offset, o.Bytes = &f.offset, int(f.bytes)
	case f.given("line") || f.given("lines"):
		o.Lines = f.lines
	case f.head == 0:
		o.Tail = f.tail
	}
	log, err := r.Log(id, o)
	if err != nil {
		return err
	}
	if f.json {
		return writeJSON(os.Stdout, log)
	}
	if log.Dropped > 0 {
		f.where.console.notef("what the job printed before byte %d is not kept any more", log.Job.Output.First)
	}
	_, err = io.WriteString(&f.where.console.stdout, log.Text)
	return err
}

// found prints the lines that match, as grep -n does.
func (f *logFlags) found(r jobs.Handle, id string) error {
	found, err := r.Search(id, f.search, jobs.SearchOptions{From: f.offset, Max: f.lines})
	if err != nil {
		return err
	}
	if found.Matches == nil {
		found.Matches = []jobs.Match{} // Readers can loop over it.
	}
	if f.json {
		if err := writeJSON(os.Stdout, found); err != nil {
			return err
		}
	} else {
		if found.Dropped > 0 {
			f.where.console.notef("the first %d bytes are not kept any more, and were not searched", found.Job.Output.First)
		}
		for _, match := range found.Matches {
			if _, err := fmt.Printf("%d:%s\n", match.Number, match.Text); err != nil {
				return err
			}
		}
		if found.More {
			f.where.console.notef("more lines match: raise --lines, or go on by --offset %d", found.Matches[len(found.Matches)-1].Offset+1)
		}
	}
	if len(found.Matches) == 0 {
		return exit(codeNoMatch)
	}
	return nil
}
