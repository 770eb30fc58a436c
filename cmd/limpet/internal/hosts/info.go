package hosts

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
)

func infoCommand(p sessions.Program) *cobra.Command {
	var agents sessions.Agents
	cmd := &cobra.Command{
		Use:     "info [flags] name|target",
		Aliases: []string{"show"},
		Short:   "Show a machine, and what is kept there",
		Long: `Info reaches a machine, by the connection that is shared if there is one, and shows which limpet answers there, and the sessions that
are kept, with those that were left behind when a connection was lost.`,
		Example: "  limpet hosts info dev",
		Args:    noun.Wants(1, 1, "wants a name or a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return onHost(p, cmd, args[0], p.HostOptions(agents), func(ctx context.Context, h *host.Host, t host.Target) error {
				list, err := h.List(ctx, false)
				if err != nil {
					return err
				}
				if err := noun.Table(os.Stdout, about(h, t, list)...); err != nil || len(list) == 0 {
					return err
				}
				fmt.Println()
				return sessions.Table(list, h.UpgradesTo(), t.String())
			})
		},
	}
	agents.Add(cmd.Flags(), "")
	return cmd
}

// onHost does something with a machine, by a connection as the options say.
func onHost(p sessions.Program, cmd *cobra.Command, said string, opts *host.Options, do func(context.Context, *host.Host, host.Target) error) error {
	t, err := host.Resolve(said)
	if err != nil {
		return noun.Usagef(cmd, "%w", err)
	}
	ctx, stop := p.Until(cmd.Context())
	defer stop()
	h, err := host.Dial(ctx, t, opts)
	if err != nil {
		return err
	}
	defer func() { _ = h.Disconnect() }() // Best effort: the answers are here, and the other side ends a connection that nobody uses.
	return do(ctx, h, t)
}

// about is what is known of a machine.
func about(h *host.Host, t host.Target, list []keeper.Listed) [][]string {
	hello := h.Hello()
	var shown [][]string
	for _, line := range [][]string{
		{"target", t.String()}, {"limpet", hello.Version}, {"program", hello.Executable}, {"machine", hello.Machine}, {"started as", hello.Boot},
		{"sessions kept", fmt.Sprint(len(list))},
	} {
		if line[1] != "" {
			shown = append(shown, line)
		}
	}
	return shown
}

func checkCommand(p sessions.Program) *cobra.Command {
	var agents sessions.Agents
	cmd := &cobra.Command{
		Use:   "check [flags] name|target",
		Short: "See whether a machine can be reached, and how fast",
		Long: `Check reaches a machine by a connection of its own, and says what is there: which limpet, since when the machine runs, how many
sessions are kept, and how long an answer takes. It warns where a logout would end what is kept.`,
		Example: "  limpet hosts check ssh://build-box",
		Args:    noun.Wants(1, 1, "wants a name or a target"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts := p.HostOptions(agents)
			opts.Share = false
			began := time.Now()
			return onHost(p, cmd, args[0], opts, func(ctx context.Context, h *host.Host, t host.Target) error {
				reached := time.Since(began)
				list, err := h.List(ctx, false)
				if err != nil {
					return err
				}
				var took []time.Duration
				for range 5 {
					began := time.Now()
					if _, err := h.List(ctx, false); err != nil {
						return err
					}
					took = append(took, time.Since(began))
				}
				slices.Sort(took)
				lines := append(about(h, t, list),
					[]string{"reached in", reached.Round(time.Millisecond).String()}, []string{"an answer takes", took[len(took)/2].Round(10 * time.Microsecond).String()})
				if err := noun.Table(os.Stdout, lines...); err != nil {
					return err
				}
				return warnOfLogout(ctx, p, h)
			})
		},
	}
	agents.Add(cmd.Flags(), "")
	return cmd
}

// logout asks logind whether it ends what a user leaves behind: see logind.conf(5) and loginctl(1).
const logout = `command -v loginctl >/dev/null || exit 0
user=$(id -un)
[[ $(loginctl show-user -p KillUserProcesses --value 2>/dev/null) == yes ]] || exit 0
[[ $(loginctl show-user "$user" -p Linger --value 2>/dev/null) == yes ]] || echo "$user"`

// warnOfLogout says if a logout over there ends what is kept.
func warnOfLogout(ctx context.Context, p sessions.Program, h *host.Host) error {
	s, err := h.Temporary(ctx, host.TemporaryName("check"), &keeper.Spec{})
	if err != nil {
		return err
	}
	defer s.Disconnect()
	res, err := s.Run(ctx, logout)
	if err != nil {
		return err
	}
	if user := noun.OneLine(res.Stdout.String()); user != "" { // What it says is shown, and not obeyed.
		p.Note("what is kept there ends with the last login of %s, as logind has KillUserProcesses=yes: loginctl enable-linger, run there, keeps it", user)
	}
	return nil
}
