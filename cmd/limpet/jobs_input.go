package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/jobs"
)

func jobsWriteCommand(where *registryFlags) *cobra.Command {
	var approve approveFlag
	cmd := &cobra.Command{
		Use:   "write [flags] id [text]",
		Short: "Write to what a job reads",
		Long: `Write writes the text as it is, without a newline, to what the job reads; without a
text, or with - in its place, standard input up to its end. The job must have been started with --stdin or
--pty. It returns when the job, or the pipe before it, has taken all. A job that
takes nothing for two seconds is an error.`,
		Example: `  limpet jobs write python $'print(1)\n'
  limpet jobs write sort <words && limpet jobs close sort
  limpet jobs write vim $'\e:q!\r'`,
		Args: wants(1, 2, oneJob+", and perhaps a text"),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if len(args) > 1 && args[1] != stdinArg {
				job, err := where.approved(ctx, cmd, &approve, args[0], args[1])
				if err != nil {
					return err
				}
				return where.withJob(ctx, cmd, job, func(r jobs.Handle, id string) error {
					return writeTo(r, id, []byte(args[1]), new(int))
				})
			}
			if term.IsTerminal(int(os.Stdin.Fd())) {
				return usagef(cmd, "no text: give it as an argument, or on standard input; jobs submit sends a line")
			}
			if approve.mode == "off" {
				return where.feed(ctx, cmd, args[0], os.Stdin)
			}
			text, err := readToShow("standard input", os.Stdin)
			if err != nil {
				return err
			}
			job, err := where.approved(ctx, cmd, &approve, args[0], text)
			if err != nil {
				return err
			}
			return where.feed(ctx, cmd, job, strings.NewReader(text))
		}),
	}
	approve.addInput(cmd)
	return cmd
}

// approved asks about what is to be written to the job that is meant, and returns its id. It does not own the jobs meanwhile.
func (f *registryFlags) approved(ctx context.Context, cmd *cobra.Command, approve *approveFlag, said, text string) (id string, err error) {
	if approve.mode == "off" {
		return said, nil
	}
	err = f.look(ctx, jobs.Options{}, func(r jobs.Handle) (err error) {
		id, err = idOf(cmd, r, said)
		return err
	})
	if err != nil {
		return "", err
	}
	return id, approve.input(ctx, cmd, f.console, id, text)
}

func jobsSubmitCommand(where *registryFlags) *cobra.Command {
	var approve approveFlag
	cmd := &cobra.Command{
		Use:        "submit [flags] id text",
		SuggestFor: []string{"send", "type"},
		Short:      "Write a line to what a job reads",
		Long: `Submit writes the text, and behind it what the Enter key types. The job must have
been started with --stdin or --pty. An empty text is the Enter key alone.`,
		Example: "  limpet jobs submit python 'print(1)'\n  limpet jobs submit installer yes",
		Args:    wants(2, 2, oneJob+", and a text in one argument"),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			job, err := where.approved(ctx, cmd, &approve, args[0], args[1]+"\n")
			if err != nil {
				return err
			}
			return where.withJob(ctx, cmd, job, func(r jobs.Handle, id string) error { return r.Submit(id, args[1]) })
		}),
	}
	approve.addInput(cmd)
	return cmd
}

func jobsCloseCommand(where *registryFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "close [flags] id",
		Short: "Let a job read end-of-file",
		Long: `Close lets the job read end-of-file, behind all that was written to it. To a job on a
terminal it types Ctrl-D, which means that where a program reads lines.`,
		Example: "  limpet jobs close sort",
		Args:    wants(1, 1, oneJob),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			return where.withJob(ctx, cmd, args[0], func(r jobs.Handle, id string) error { return r.CloseStdin(id) })
		}),
	}
}

func jobsResizeCommand(where *registryFlags) *cobra.Command {
	return &cobra.Command{
		Use:     "resize [flags] id rows columns",
		Short:   "Give a job's terminal another size",
		Long:    "Resize gives the terminal of a job that was started with --pty another size. The job\ngets a SIGWINCH.",
		Example: "  limpet jobs resize vim 50 132",
		Args:    wants(3, 3, oneJob+", rows and columns"),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			var size [2]uint16
			for i, name := range []string{"rows", "columns"} {
				n, err := strconv.ParseUint(args[1+i], 10, 16)
				if err != nil || n == 0 || n > math.MaxInt16 {
					return usagef(cmd, "%s %q: wants a number from 1 to %d", name, args[1+i], math.MaxInt16)
				}
				size[i] = uint16(n)
			}
			return where.withJob(ctx, cmd, args[0], func(r jobs.Handle, id string) error {
				return r.Resize(id, jobs.Size{Rows: size[0], Cols: size[1]})
			})
		}),
	}
}

// withJob does something to the job that is meant.
func (f *registryFlags) withJob(ctx context.Context, cmd *cobra.Command, said string, do func(r jobs.Handle, id string) error) error {
	return f.change(ctx, jobs.Options{}, func(r jobs.Handle) error {
		id, err := idOf(cmd, r, said)
		if err != nil {
			return err
		}
		return do(r, id)
	})
}

// writeTo writes a text, before which some bytes were taken already.
func writeTo(r jobs.Handle, id string, text []byte, taken *int) error {
	n, err := r.Write(id, text)
	*taken += n
	if errors.Is(err, jobs.ErrNotRead) {
		return fmt.Errorf("%w (%d bytes)", err, *taken)
	}
	return err
}

// feed copies what it reads to a job. It owns the jobs only while it writes: what it
// reads may take its time.
func (f *registryFlags) feed(ctx context.Context, cmd *cobra.Command, said string, from io.Reader) error {
	id := ""
	err := f.look(ctx, jobs.Options{}, func(r jobs.Handle) (err error) {
		id, err = idOf(cmd, r, said)
		return err
	})
	if err != nil {
		return err
	}
	type piece struct {
		b   []byte
		err error
	}
	pieces := make(chan piece)
	go func() { // It is not waited for: a read can last until the end of the program.
		for {
			b := make([]byte, 32<<10)
			n, err := from.Read(b)
			select {
			case pieces <- piece{b[:n], err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	for taken := 0; ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case p := <-pieces:
			if len(p.b) > 0 {
				if err := f.change(ctx, jobs.Options{}, func(r jobs.Handle) error { return writeTo(r, id, p.b, &taken) }); err != nil {
					return err
				}
			}
			if errors.Is(p.err, io.EOF) {
				return nil
			}
			if p.err != nil {
				return fmt.Errorf("reading standard input: %w", p.err)
			}
		}
	}
}
