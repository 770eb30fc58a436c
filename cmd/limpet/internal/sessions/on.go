package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/host"
)

// On is the value of the flag --on: a target, or nothing. A text that is no target, as an empty one, is refused: it would mean this
// machine.
type On struct {
	target string
	agents Agents
}

func (o *On) String() string { return o.target }
func (o *On) Type() string   { return "TARGET" }

func (o *On) Set(text string) error {
	_, err := host.Resolve(text)
	o.target = text
	return err
}

// Add adds the flag to a command, and --agents, which goes with it.
func (o *On) Add(cmd *cobra.Command, usage string) {
	o.add(cmd.Flags(), usage)
	cmd.PreRunE = o.check
}

// AddPersistent is Add for a command and those below it.
func (o *On) AddPersistent(cmd *cobra.Command, usage string) {
	o.add(cmd.PersistentFlags(), usage)
	cmd.PersistentPreRunE = o.check
}

func (o *On) add(flags *pflag.FlagSet, usage string) {
	flags.Var(o, "on", usage)
	o.agents.Add(flags, "with --on, ")
}

func (o *On) check(cmd *cobra.Command, _ []string) error { return checkAgents(cmd, o.target != "") }

// checkAgents refuses --agents where no other machine is named, as it would be ignored.
func checkAgents(cmd *cobra.Command, on bool) error {
	if !on && cmd.Flags().Changed(agentsFlag) {
		return noun.Usagef(cmd, "--%s means nothing without --on", agentsFlag)
	}
	return nil
}

// Others is the value of the flag --on of a command that is about several machines at once.
type Others struct {
	targets []string
	agents  Agents
}

// mostTarget is the longest text that names one of several machines, in bytes: it is behind the names of their sessions.
const mostTarget = 1 << 10

func (o *Others) String() string { return strings.Join(o.targets, " ") }
func (o *Others) Type() string   { return "TARGET" }

func (o *Others) Set(text string) error {
	switch {
	case slices.Contains(o.targets, text):
		return errors.New("it is given twice")
	case len(text) > mostTarget:
		return fmt.Errorf("it has %d bytes, and names a machine by %d at most: give it a name by limpet hosts add", len(text), mostTarget)
	}
	_, err := host.Resolve(text)
	o.targets = append(o.targets, text)
	return err
}

// Add adds the flag to a command, and --agents, which goes with it.
func (o *Others) Add(cmd *cobra.Command, usage string) {
	cmd.Flags().Var(o, "on", usage)
	o.agents.Add(cmd.Flags(), "with --on, ")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return checkAgents(cmd, len(o.targets) > 0) }
}

// Other is a machine that was reached.
type Other struct {
	Target string
	*host.Host
}

// DialAll reaches the machines that --on names. Call leave.
func (p Program) DialAll(ctx context.Context, on Others) (all []Other, leave func(), err error) {
	leave = func() {
		for _, one := range all {
			_ = one.Disconnect() // Nothing temporary was made.
		}
	}
	for _, target := range on.targets {
		h, err := p.dial(ctx, target, p.HostOptions(on.agents))
		if err != nil {
			leave()
			return nil, nil, err
		}
		all = append(all, Other{target, h})
	}
	return all, leave, nil
}

// addOn adds the flag that says where the sessions are.
func addOn(cmd *cobra.Command, on *On) {
	on.Add(cmd, "those of another machine, which is reached by `TARGET`; see limpet help run")
}

// What names a directory with limpet for systems, in files limpet-OS-ARCH: the flag, or else the variable.
const (
	agentsFlag = "agents"
	agentsVar  = "LIMPET_AGENTS"
)

// Agents is the value of the flag --agents. A path that is no directory is refused when the flag is read, and not later, when another machine
// needs a limpet.
type Agents struct{ dir string }

func (a *Agents) String() string { return a.dir }
func (a *Agents) Type() string   { return "DIR" }

func (a *Agents) Set(dir string) error {
	st, err := os.Stat(dir)
	switch {
	case dir == "":
		return errors.New("wants a directory; is a variable empty?")
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such directory: make it, and put a file limpet-OS-ARCH into it for each system")
	case err != nil:
		return err
	case !st.IsDir():
		return errors.New("it is no directory: name the one that the files limpet-OS-ARCH are in")
	}
	a.dir = dir
	return nil
}

// Add adds the flag. When is the beginning of its usage.
func (a *Agents) Add(flags *pflag.FlagSet, when string) {
	flags.Var(a, agentsFlag, when+"copy the limpet for the system there from `DIR`, which has files limpet-OS-ARCH; see limpet help hosts (default: what "+agentsVar+" names)")
}

func (a *Agents) orVariable() string { return cmp.Or(a.dir, os.Getenv(agentsVar)) }
