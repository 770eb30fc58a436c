package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
)

func approveCommand() *cobra.Command {
	return approve.Command(exit, helpCommand(), noCommand)
}

// approveExitCodes are those of limpet approve.
var approveExitCodes = []exitCode{
	{0, "", "the script is known to change nothing", nil},
	{codeUsage, "", "wrong usage: a bad flag, or no script", nil},
	{approve.CodeAsk, "", "a person should decide about the script", nil},
	{approve.CodeDeny, "", "a rule denies the script", nil},
}

// approveFlag is --approve of run and repl.
type approveFlag struct{ mode string }

func (f *approveFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.mode, "approve", "off", "before a script that is not known to change nothing: ask a person at the terminal, deny it, or off. `MODE` is ask, deny or off; see limpet help approve")
}

// gate returns what lets scripts pass; nil: all of them pass. Session is the name of the session that they run in, if others can use it.
func (f *approveFlag) gate(cmd *cobra.Command, shell *shellFlags, session string) (*gate, error) {
	home, _ := os.UserHomeDir() // Without it, more paths are taken for homes.
	g := &gate{}
	switch f.mode {
	case "off":
		return nil, nil
	case "deny":
		g.Gate = approval.NewGate(func(_ context.Context, q approval.Question) (approval.Answer, error) {
			return approval.No, fmt.Errorf("%w: with --approve ask a person at the terminal decides", &approval.RefusedError{Question: q, Nobody: true})
		}, &approval.Options{Home: home})
	case "ask":
		g.Gate = approval.NewGate(g.ask, &approval.Options{Home: home})
	default:
		return nil, usagef(cmd, "--approve %q: it is one of %s", f.mode, strings.Join(approve.Modes, ", "))
	}
	if session != "" || shell.login || len(shell.initFiles) > 0 {
		g.Changed() // What others run there, and startup files, may define functions.
	}
	return g, nil
}

// gate asks at limpet's terminal before scripts run.
type gate struct {
	*approval.Gate

	// Of the script that is checked: the file that it is in, or "", and where output of those before it was shown.
	file    string
	console *console
}

// check returns nil if a script may run in the shell. File is where its text is, if that is not the script itself.
func (g *gate) check(ctx context.Context, sh runsIn, console *console, file, text string) error {
	if g == nil {
		return nil
	}
	g.file, g.console = file, console
	for {
		dir := sh.Dir()
		if err := g.Check(ctx, text, dir); err != nil || sh.Dir() == dir {
			return err
		}
	}
}

func (g *gate) ask(ctx context.Context, q approval.Question) (answer approval.Answer, err error) {
	err = g.console.question(ctx, func(tty *os.File) (err error) {
		answer, err = g.askAt(ctx, tty, q)
		return err
	})
	if errors.Is(err, errNobody) {
		return approval.No, fmt.Errorf("%w: limpet has no terminal, or is in the background of one, or runs in a session of limpet; a person can run it, or let it run by --approve off", &approval.RefusedError{Question: q, Nobody: true})
	}
	return answer, err
}

func (g *gate) askAt(ctx context.Context, tty *os.File, q approval.Question) (approval.Answer, error) {
	if g.file == "" {
		return approve.Ask(ctx, tty, q, "")
	}
	text, err := fileToShow(g.file)
	for err == nil {
		var answer approval.Answer
		if answer, err = approve.Ask(ctx, tty, q, text); err != nil || answer == approval.No {
			return answer, err
		}
		before := text
		if text, err = fileToShow(g.file); err == nil && text == before {
			return answer, nil
		} // Else it is another script now, and asked about anew.
	}
	return approval.No, err
}

// mostShown is how long a file may be that is shown, in bytes: as long as a script that can be judged.
const mostShown = 64 << 10

// fileToShow returns the text of a file that runs. A person is not asked about one that is too long to be read through.
func fileToShow(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("showing the script to a person: %w", err)
	}
	defer f.Close() // It was read only.
	text, err := io.ReadAll(io.LimitReader(f, mostShown+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("showing the script to a person: %w", err)
	case len(text) > mostShown:
		return "", fmt.Errorf("%s has more than %d bytes, which is too long for a question: read it, and run it by --approve off", path, mostShown)
	}
	return string(text), nil
}
