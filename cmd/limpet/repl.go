package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/shell"
)

func replCommand() *cobra.Command {
	var flags shellFlags
	var kept keptFlags
	var approve approveFlag
	cmd := &cobra.Command{
		Use:        "repl [flags]",
		SuggestFor: []string{"sh", "shell", "bash"},
		Short:      "Type commands into one shell",
		Long: `Repl reads commands line by line and runs them in one bash, with live output.
The prompt shows the directory, and the last exit code if it was not 0. A
statement that is not complete goes on in the next line.

Ctrl-C stops the command that runs, or drops the line that is being typed.
Ctrl-\ and Ctrl-Z do nothing: a command cannot be suspended, but one with & at
its end runs in the background. Ctrl-D or exit leaves, with the exit code that a
shell would have. A statement that ends in another way, as by set -e, leaves the
shell as it is, and a bash that was killed is replaced by one with its state. Set -e
and the like stay for the next statement, and aliases are expanded, as in an
interactive bash.

With --session NAME it types into a session that stays when limpet ends, which is made if there
is none: see limpet help session. Exit leaves limpet then, and not the session. Other programs may
run commands there, between two of these; set -e ends with its statement, and aliases are as the
session has them.

Where standard input is no terminal there are no prompts, as in bash. Commands
read nothing from it, nor from the terminal: they have no standard input.`,
		Example: `  limpet repl
  limpet repl --dir /tmp --timeout 1m
  limpet repl --session build
  printf 'cd /tmp\npwd\nexit 3\n' | limpet repl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef(cmd, "takes no arguments, got %q: to run a script use limpet run", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			named, err := kept.asked(cmd)
			if err != nil {
				return err
			}
			opts, err := flags.options(cmd)
			if err != nil {
				return err
			}
			gate, err := approve.gate(cmd, &flags, kept.name)
			if err != nil {
				return err
			}
			if named {
				if err := refuseIn(cmd, "--session", "dir"); err != nil { // It would be that of each statement.
					return err
				}
				return replKept(cmd, &kept, &flags, gate, approve.mode)
			}
			opts.Aliases, opts.KeepOptions = true, true // As in a bash that somebody types into.
			return runREPL(cmd, opts, &flags, gate, approve.mode, &kept.audit)
		},
	}
	kept.addName(cmd)
	approve.add(cmd)
	flags.add(cmd)
	return cmd
}

const greeting = "limpet: bash that stays. Ctrl-C stops a command, Ctrl-D or exit leaves."

func runREPL(cmd *cobra.Command, opts *shell.Options, flags *shellFlags, gate *gate, mode string, writesDown *auditFlags) error {
	// With room for each: a Ctrl-C must not get lost behind a Ctrl-\.
	signals := make(chan os.Signal, len(stopSignals))
	console := newConsole()
	audit, err := writesDown.own(cmd, console)
	if err != nil {
		return err
	}
	opts.Logger, opts.AskPassword = console.logger(), flags.passwords(console, mode)
	if audit != nil {
		opts.AskPassword = audit.passwords(opts.AskPassword)
	}
	sh, err := openForREPL(signals, func(ctx context.Context) (*shell.PersistentShell, error) { return shell.Start(ctx, opts) }, func(sh *shell.PersistentShell) {
		sh.Close() // It cannot fail.
	})
	if err != nil {
		return err
	}
	defer sh.Close() // It cannot fail.
	r := repl{sh: sh, signals: signals, console: console, home: homeOf(opts.Env), mergeStderr: flags.mergeStderr, gate: gate, audit: audit}
	return r.start()
}

// replKept is runREPL in a session that is kept.
func replKept(cmd *cobra.Command, kept *keptFlags, flags *shellFlags, gate *gate, mode string) error {
	signals := make(chan os.Signal, len(stopSignals)) // As above.
	console := newConsole()
	sh, err := openForREPL(signals, func(ctx context.Context) (*keptShell, error) { return kept.open(ctx, cmd, flags, console, mode) }, (*keptShell).Disconnect)
	if err != nil {
		return err
	}
	defer sh.Disconnect()
	r := repl{sh: sh, signals: signals, console: console, home: homeOf(os.Environ()), mergeStderr: flags.mergeStderr, gate: gate, stays: kept.name != ""}
	return r.start()
}

// start reads until somebody wants to leave.
func (r *repl) start() error {
	r.lines = newLineReader()
	defer r.lines.close()
	if r.lines.asks() {
		ignoreSuspend()
		fmt.Fprintln(os.Stderr, greeting)
	}
	defer r.console.answered() // Nobody will.
	return r.loop()
}

// openForREPL opens a shell. Until it is there, a signal ends limpet; after
// that they all go to signals, without a moment in between when one would kill.
func openForREPL[S runsIn](signals chan<- os.Signal, open func(context.Context) (S, error), leave func(S)) (S, error) {
	ctx, stop := untilSignal(context.Background())
	sh, err := open(ctx)
	catch(signals, stopSignals...)
	stop()
	if err == nil && gotSignal(ctx) != nil {
		leave(sh)
	}
	return sh, withSignal(ctx, err)
}

// repl reads, runs and tells, until somebody wants to leave.
type repl struct {
	sh          runsIn
	signals     <-chan os.Signal
	console     *console
	lines       lineReader
	home        string
	mergeStderr bool
	gate        *gate // nil: all may run
	audit       *ownShell
	stays       bool // the session does: what runs in it runs on when the terminal is gone

	status  int          // the exit code of the last command
	reading <-chan reply // the read that is under way; nil if there is none
}

// loop returns the code to leave with as an error.
func (r *repl) loop() error {
	for {
		statement, err := r.statement()
		if errors.Is(err, io.EOF) {
			return exit(r.status)
		}
		if err != nil {
			if r.lines.asks() {
				fmt.Fprintln(os.Stderr) // The cursor is behind a prompt.
			}
			return err
		}
		if strings.TrimSpace(statement) == "" {
			continue
		}
		if leave, err := r.run(statement); leave {
			return err
		}
	}
}

// statement reads lines until they make a statement. Ctrl-C starts it afresh.
// Where the input ends in the middle of one it is returned as it is, for bash
// to say what it thinks of that; the next call finds the end again.
func (r *repl) statement() (string, error) {
	text := ""
	for {
		ask := morePrompt
		if text == "" {
			if r.lines.asks() {
				r.console.freshLine()
			}
			ask = prompt(r.sh.Dir(), r.home, r.status)
		}
		line, err := r.line(ask)
		switch {
		case errors.Is(err, errAborted):
			text = ""
			continue
		case errors.Is(err, io.EOF) && text != "":
			return text, nil
		case err != nil:
			return "", err
		}
		text += line + "\n"
		if !incomplete(text) {
			return text, nil
		}
	}
}

// reply is what a read came back with.
type reply struct {
	line string
	err  error
}

// line reads one line. A signal does not wait for it: it returns at once, and
// the read that is under way becomes that of the next call. At the end of
// limpet it is left behind: nothing but the end of the program frees it.
func (r *repl) line(ask string) (string, error) {
	if r.lines.asks() {
		if err := r.awaitTurn(); err != nil {
			return "", err
		}
		r.console.asks()
	}
	if r.reading != nil {
		r.lines.ask(ask)
	} else {
		replies := make(chan reply, 1)
		r.reading = replies
		go func() {
			line, err := r.lines.read(ask)
			replies <- reply{line, err}
		}()
	}
	for {
		select {
		case got := <-r.reading:
			r.reading = nil
			r.giveTurn()
			r.console.answered()
			return got.line, got.err
		case sig := <-r.signals:
			if err := whileTyping(sig); err != nil {
				return "", err
			}
		}
	}
}

// awaitTurn waits until no question is asked at the terminal, as by a program in the background, and has none asked until giveTurn.
func (r *repl) awaitTurn() error {
	for !r.console.isTyped() {
		select {
		case r.console.turn <- struct{}{}:
			r.console.setTyping(true)
		case sig := <-r.signals:
			if err := whileTyping(sig); err != nil {
				return err
			}
		}
	}
	return nil
}

// giveTurn ends what awaitTurn has begun; it does nothing if there were no prompts.
func (r *repl) giveTurn() {
	if r.console.isTyped() {
		r.console.setTyping(false)
		<-r.console.turn
	}
}

// whileTyping is what a signal means that comes while a line is typed.
func whileTyping(sig os.Signal) error {
	switch sig {
	case syscall.SIGQUIT: // As in an interactive bash.
		return nil
	case syscall.SIGINT:
		return errAborted
	}
	return &signalError{sig.(syscall.Signal)}
}

// run runs a statement and says whether to leave after it, with which error.
func (r *repl) run(statement string) (leave bool, _ error) {
	res, err, sig := r.do(statement)
	r.status = codeOfResult(res, err)
	if err == nil {
		err = r.console.lost(res)
	}
	if err != nil {
		r.console.notef("%s", explain(err))
	}
	if sig != nil {
		return true, exit(codeOf(sig))
	}
	// A statement that ended the shell that it ran in has no pipeline.
	ended := res.Restart != nil || res.Receipt.Pipeline == nil
	if err == nil && (ended && wantsExit(statement) || mustExit(statement)) {
		return true, exit(r.status)
	}
	if len(res.Receipt.NotKept) > 0 {
		r.console.notef("%s", notKept(res.Receipt))
	}
	if res.Restart != nil {
		r.console.notef("%s", explain(restartNews{res.Restart}))
	}
	return false, nil
}

// do runs a statement. SIGINT stops it; any other signal does so too and comes
// back, because it is meant for limpet. A SIGHUP only comes back if the session stays.
func (r *repl) do(statement string) (_ command.Result, err error, told error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	left := false
	defer func() {
		if !left {
			cancel(nil)
		}
	}()
	type outcome struct {
		res command.Result
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		refused := r.gate.check(ctx, r.sh, r.console, "", statement)
		res, err := r.audit.runs(r.sh.Dir(), statement, refused, func() (command.Result, error) {
			return r.gate.run(ctx, r.sh, r.console, "", statement, command.Request{
				Script: statement, Stdout: &r.console.stdout, Stderr: &r.console.stderr, MergeStderr: r.mergeStderr,
			})
		})
		done <- outcome{res, err}
	}()
	for {
		select {
		case o := <-done:
			return o.res, o.err, told
		case sig := <-r.signals:
			if sig == syscall.SIGQUIT { // As in an interactive bash.
				continue
			}
			if sig == syscall.SIGHUP && r.stays {
				left = true // The call ends when limpet lets go of the session, which is no stop.
				return command.Result{}, nil, &signalError{syscall.SIGHUP}
			}
			stop := &signalError{sig.(syscall.Signal)}
			if sig != syscall.SIGINT {
				told = stop
			}
			cancel(stop)
		}
	}
}
