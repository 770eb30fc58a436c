package main

import (
	"context"
	"fmt"
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

// gate returns what lets scripts pass; nil: all of them pass.
func (f *approveFlag) gate(cmd *cobra.Command, shell *shellFlags) (*gate, error) {
	home, _ := os.UserHomeDir() // Without it, more paths are taken for homes.
	g := &gate{}
	switch f.mode {
	case "off":
		return nil, nil
	case "deny":
		g.Gate = approval.NewGate(nil, &approval.Options{Home: home})
	case "ask":
		g.Gate = approval.NewGate(g.ask, &approval.Options{Home: home})
	default:
		return nil, usagef(cmd, "--approve %q: it is one of %s", f.mode, strings.Join(approve.Modes, ", "))
	}
	if shell.login || len(shell.initFiles) > 0 {
		g.Changed() // By functions, say, that are in them.
	}
	return g, nil
}

// gate asks at limpet's terminal before scripts run.
type gate struct {
	*approval.Gate
	shown oneScript // that is asked about
}

// check returns nil if a script may run in the shell.
func (g *gate) check(ctx context.Context, sh runsIn, s oneScript, text string) error {
	if g == nil {
		return nil
	}
	if kept, ok := sh.(*keptShell); ok && !kept.Made {
		g.Changed() // By whoever has used the session before, and may use it now.
	}
	g.shown = s
	for {
		dir := sh.Dir()
		if err := g.Check(ctx, text, dir); err != nil || sh.Dir() == dir {
			return err
		}
	}
}

func (g *gate) ask(ctx context.Context, q approval.Question) (approval.Answer, error) {
	tty := approve.Terminal()
	if tty == nil {
		return approval.No, fmt.Errorf("%w: limpet has no terminal, or is in the background of one, or runs in a session of limpet; a person can run it, or let it run by --approve off", &approval.RefusedError{Question: q, Nobody: true})
	}
	defer tty.Close() // Nothing is lost: the answer is known.
	if g.shown.file == "" {
		return approve.Ask(ctx, tty, q, "", "")
	}
	text, err := os.ReadFile(absolute(g.shown.file))
	if err != nil {
		return approval.No, fmt.Errorf("asking about a script in a file: %w", err)
	}
	return approve.Ask(ctx, tty, q, "The file has:", string(text))
}
