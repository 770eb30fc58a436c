package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/approve"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/session"
)

// mcpApprove are the flags of limpet mcp that say what an agent may do without a person.
type mcpApprove struct {
	mode   string
	wait   time.Duration
	elicit bool

	askpass bool // programs may ask for passwords

	record *recorder // nil: nothing is written down

	dir func() (string, error) // where people are asked; nil: where the user's programs do
}

// mcpApproveNames are those flags.
var mcpApproveNames = []string{"approve", "approve-wait", "elicit", "askpass"}

func (f *mcpApprove) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.mode, "approve", "off", "what is not known to change nothing: ask a person, who answers by limpet approvals, deny it, or off. `MODE` is ask, deny or off")
	durationVar(flags, &f.wait, "approve-wait", approve.DefaultWait, "with --approve ask, refuse what nobody has approved within `TIME`; a host that gives calls up soon gets the answer sooner")
	flags.BoolVar(&f.elicit, "elicit", false, "with --approve ask, have the host show the question, too (elicitation): for hosts that never answer for their users")
	flags.BoolVar(&f.askpass, "askpass", false, "let sudo -A, ssh and git that the agent runs ask a person for passwords, who answers by limpet approvals; see limpet help passwords")
}

// where is where people are asked.
func (f *mcpApprove) where() func() (string, error) {
	if f.dir != nil {
		return f.dir
	}
	return questionsDir
}

// passwords returns what asks a person for passwords, for shell.Options; nil: nothing does.
func (f *mcpApprove) passwords() func(context.Context, command.PasswordQuestion) ([]byte, error) {
	if !f.askpass {
		return nil
	}
	return f.record.passwords(approve.Sessions{From: "limpet mcp", Dir: f.where()}.Password)
}

// sessions returns what decides about a session, for session.Options; nil: nothing does.
func (f *mcpApprove) sessions(cmd *cobra.Command, shell *shellFlags, env []string) (func(session.Approved) session.Approver, error) {
	given := cmd.Flags().Changed
	switch {
	case f.mode != "ask" && (given("approve-wait") || given("elicit")):
		return nil, usagef(cmd, "--approve-wait and --elicit mean nothing without --approve ask")
	case f.wait <= 0:
		return nil, usagef(cmd, "--approve-wait %v: wants a time, as in 5m", f.wait)
	}
	s := approve.Sessions{
		Mode: f.mode, Changed: shell.login || len(shell.initFiles) > 0, Wait: f.wait, Elicit: f.elicit, From: "limpet mcp", Dir: f.where(), Env: env,
		Asked: f.record.asked,
	}
	switch f.mode {
	case "off":
		return nil, nil
	case "ask", "deny":
		return s.Approver, nil
	}
	return nil, usagef(cmd, "--approve %q: it is one of %s", f.mode, strings.Join(approve.Modes, ", "))
}
