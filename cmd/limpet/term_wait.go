package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/terminal"
)

type termWaitFlags struct {
	where   *termFlags
	options terminal.WaitOptions
	json    bool
}

func termWaitCommand(where *termFlags) *cobra.Command {
	flags := termWaitFlags{where: where}
	cmd := &cobra.Command{
		Use:   "wait [flags] id",
		Short: "Wait for the end of a program, or for what is on its screen",
		Long: `Wait waits until the program on the terminal has ended, or until something else that is
asked for has come, and prints what that was.

The exit code is that of the program if it has ended (128+n if signal n has ended it,
125 if nobody knows how), 0 if what was waited for has come, and 124 if the time is
over. Then the program runs on, and so it does after a Ctrl-C.

With --json, it prints a line of JSON.`,
		Example: `  limpet term wait psql
  limpet term wait --prompt --timeout 10s psql
  limpet term wait --pattern '(?m)^PASS|^FAIL' tests
  limpet term wait --gone --text 'Loading' app`,
		Args: wants(1, 1, oneTerm),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if err := flags.check(cmd); err != nil {
				return err
			}
			return where.with(ctx, cmd, args[0], func(t *reached) error { return flags.wait(ctx, t) })
		}),
	}
	o := &flags.options
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&o.Text, "text", "", "wait until the `TEXT` is on the screen, in one line")
	cmd.Flags().StringVar(&o.Pattern, "pattern", "", "wait until the screen matches `REGEXP` (RE2); (?m) makes ^ and $ those of a line")
	cmd.Flags().BoolVar(&o.Gone, "gone", false, "wait until the --text or --pattern is not there any more")
	durationVar(cmd.Flags(), &o.Silence, "silence", 0, "wait until the program has printed nothing for `TIME`, as in 5s")
	cmd.Flags().BoolVar(&o.Prompt, "prompt", false, "wait until the program waits for input, or seems to, which is a guess")
	cmd.Flags().StringVar(&o.PromptPattern, "prompt-pattern", "", "what a prompt looks like that ends at the cursor, by `REGEXP`; it implies --prompt")
	cmd.Flags().Int64Var(&o.From, "from", 0, "wait until something was printed behind the `N`-th byte first, as in bytes of term info --json")
	durationVar(cmd.Flags(), &o.Timeout, "timeout", 0, "wait no longer than `TIME`, as in 5 (seconds), 500ms or 5m (default: as long as it takes)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print a line of JSON")
	return cmd
}

func (f *termWaitFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	for _, name := range []string{"pattern", "prompt-pattern"} {
		if given(name) {
			if err := matchable(cmd, name, cmd.Flags().Lookup(name).Value.String()); err != nil {
				return err
			}
		}
	}
	switch {
	case given("text") && f.options.Text == "":
		return usagef(cmd, `--text "": wants a text; is a variable empty?`)
	case f.options.Gone && !given("text") && !given("pattern"):
		return usagef(cmd, "--gone means nothing without --text or --pattern")
	case f.options.From < 0:
		return usagef(cmd, "--from %d: wants 0 or more", f.options.From)
	}
	if err := oneOf(cmd, "text", "pattern"); err != nil {
		return err
	}
	return timed(cmd, "silence", "timeout")
}

func (f *termWaitFlags) wait(ctx context.Context, t *reached) error {
	got, err := waitAsLongAs(ctx, t, f.options)
	if err != nil {
		return err
	}
	if f.json {
		err = writeJSON(os.Stdout, got)
	} else {
		_, err = fmt.Println(f.line(got))
	}
	switch {
	case err != nil:
		return err
	case got.Reason == terminal.WaitTimeout:
		return exit(codeTimeout)
	case got.Reason == terminal.WaitExited:
		return exit(codeOfTerm(got.Info))
	}
	return nil
}

// waitAsLongAs waits for as long as it is told, or as it takes, also where the program that
// has the terminal has a bound for that: who waits at a shell can end it by a key.
func waitAsLongAs(ctx context.Context, t *reached, o terminal.WaitOptions) (terminal.Waited, error) {
	for began := time.Now(); ; {
		now := o
		if o.Timeout > 0 {
			now.Timeout = max(o.Timeout-time.Since(began), time.Millisecond)
		}
		got, err := t.Wait(ctx, now)
		if err != nil || got.Reason != terminal.WaitTimeout || o.Timeout > 0 && time.Since(began) >= o.Timeout {
			got.Took, got.Timeout, got.Clamped = time.Since(began), o.Timeout, false
			return got, err
		}
	}
}

// line says what has come:
//
//	term-psql-x3k9q2ab: exited: exit 2, after 1.2s, 4711 bytes of output
//	term-psql-x3k9q2ab: prompt: orders=#
func (f *termWaitFlags) line(got terminal.Waited) string {
	what := describeTerm(got.Info)
	switch got.Reason {
	case terminal.WaitMatched, terminal.WaitPrompt:
		what = printable(got.Match)
	case terminal.WaitGone:
		what = fmt.Sprintf("after %v", age(got.Took))
	case terminal.WaitSilent:
		what = fmt.Sprintf("for %v", f.options.Silence)
	case terminal.WaitTimeout:
		what = fmt.Sprintf("after %v; %s", f.options.Timeout, what)
	}
	return fmt.Sprintf("%s: %s: %s", got.Info.ID, got.Reason, what)
}
