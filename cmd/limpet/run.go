package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/shell"
)

type runFlags struct {
	shell       shellFlags
	json        bool
	receipt     bool
	stopOnError bool
}

func runCommand() *cobra.Command {
	var flags runFlags
	cmd := &cobra.Command{
		Use:   "run [flags] [script...]",
		Short: "Run scripts, one after the other, in one shell",
		Long: `Run runs its arguments one after the other in one bash, with live output. What
a script changes (directory, variables, functions, options, traps, jobs) is
there for the next one, even if a script ends bash with "exit". Without
arguments, the whole of standard input is one script.

All scripts are run, also after one that failed; see --stop-on-error. The exit
code is that of the last one that ran; see limpet help exit-codes. Scripts
themselves read nothing from standard input. What they leave running in the
background ends with limpet.

With --json, each result is one line of JSON on stdout and there is no live
output. Bytes that are not UTF-8 become U+FFFD there.`,
		Example: `  limpet run 'cd /tmp' 'x=1' 'echo $x in $PWD'
  limpet run -e --timeout 10m 'make' 'make test'
  limpet run --json 'seq 3 | grep 2' | jq .receipt.pipeline
  limpet run --env GREETING=hello <script.sh`,
		RunE: func(cmd *cobra.Command, args []string) error {
			scripts, err := scriptsOf(cmd, args)
			if err != nil {
				return err
			}
			opts, err := flags.shell.options(cmd)
			if err != nil {
				return err
			}
			return runScripts(flags, opts, scripts)
		},
	}
	cmd.Flags().BoolVar(&flags.json, "json", false, "print each result as a line of JSON, and no live output")
	cmd.Flags().BoolVar(&flags.receipt, "receipt", false, "print to stderr what each script cost and left behind")
	cmd.Flags().BoolVarP(&flags.stopOnError, "stop-on-error", "e", false, "run no more after a script that failed")
	flags.shell.add(cmd)
	return cmd
}

// scriptsOf returns what to run, all of it checked: a bad script shall not be
// found out after half of them have run.
func scriptsOf(cmd *cobra.Command, args []string) ([]string, error) {
	if len(args) == 0 {
		if term.IsTerminal(int(os.Stdin.Fd())) {
			return nil, &usageError{command: cmd.CommandPath(), err: errNoInput}
		}
		script, err := io.ReadAll(os.Stdin)
		if err != nil {
			return nil, fmt.Errorf("reading the script from standard input: %w", err)
		}
		err = (command.Request{Script: string(script)}).Validate()
		if errors.Is(err, command.ErrEmptyScript) {
			return nil, usagef(cmd, "%w", errNothing)
		}
		if err != nil {
			return nil, usagef(cmd, "standard input: %w", err)
		}
		return []string{string(script)}, nil
	}
	for i, script := range args {
		err := (command.Request{Script: script}).Validate()
		if errors.Is(err, command.ErrEmptyScript) {
			return nil, usagef(cmd, "script %d is empty", i+1)
		}
		if err != nil {
			return nil, usagef(cmd, "script %d: %w", i+1, err)
		}
	}
	return args, nil
}

func runScripts(flags runFlags, opts *shell.Options, scripts []string) (err error) {
	ctx, stop := untilSignal(context.Background())
	defer stop()
	console := newConsole()
	opts.Logger = console.logger()
	sh, err := shell.Start(ctx, opts)
	if err != nil {
		return errors.Join(gotSignal(ctx), err)
	}
	defer sh.Close() // It cannot fail.
	r := runner{flags: flags, sh: sh, console: console}
	return r.all(ctx, scripts)
}

// runner runs the scripts and tells what came of them.
type runner struct {
	flags   runFlags
	sh      *shell.PersistentShell
	console *console
}

// all runs the scripts and returns the last one's exit code as an error.
func (r *runner) all(ctx context.Context, scripts []string) error {
	code := 0
	for i, script := range scripts {
		req := command.Request{Script: script, MergeStderr: r.flags.shell.mergeStderr}
		if !r.flags.json {
			req.Stdout, req.Stderr = &r.console.stdout, &r.console.stderr
		}
		res, err := r.sh.Do(ctx, req)
		last := i == len(scripts)-1
		if err == nil && !r.flags.json {
			err = r.console.lost(res)
		}
		if err := r.tell(script, res, err, last); err != nil {
			return err
		}
		if err := gotSignal(ctx); err != nil {
			return exit(codeOf(err))
		}
		code = codeOfResult(res, err)
		if r.flags.stopOnError && code != 0 {
			break
		}
		if res.Restart != nil && res.Restart.Err != nil && !last {
			return fmt.Errorf("the remaining scripts were not run: %w", res.Restart.Err)
		}
	}
	return exit(code)
}

// tell says what came of a script, beyond the output that the user has seen.
func (r *runner) tell(script string, res command.Result, err error, last bool) error {
	switch {
	case r.flags.json:
		if err := printJSON(os.Stdout, script, res, err); err != nil {
			return fmt.Errorf("printing a result: %w", err)
		}
	case err != nil:
		r.console.notef("%s", explain(err))
	case res.Denied != "":
		r.console.notef("perhaps because %s", res.Denied)
	}
	if res.Restart != nil && !r.flags.json && (err != nil || !last) {
		// After the last script nobody misses the old bash.
		r.console.notef("%s", explain(restartNews{res.Restart}))
	}
	if r.flags.receipt {
		r.console.notef("%s", receiptLine(res, err))
	}
	return nil
}
