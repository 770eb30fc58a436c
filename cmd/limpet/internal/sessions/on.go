package sessions

import (
	"cmp"
	"errors"
	"io/fs"
	"os"

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

func (o *On) check(cmd *cobra.Command, _ []string) error {
	if o.target == "" && cmd.Flags().Changed(agentsFlag) {
		return noun.Usagef(cmd, "--%s means nothing without --on", agentsFlag)
	}
	return nil
}

// addOn adds the flag that says where the sessions are.
func addOn(cmd *cobra.Command, on *On) {
	on.Add(cmd, "those of another machine, which is reached by `TARGET`; see limpet help run")
}

// What names a directory with limpet for other systems, in files limpet-OS-ARCH: the flag, or else the variable.
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
		return errors.New("there is no such directory: make it, and put a file limpet-OS-ARCH into it for each other system")
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
	flags.Var(a, agentsFlag, when+"copy limpet for another system there from `DIR`, which has files limpet-OS-ARCH (default: what "+agentsVar+" names)")
}

func (a *Agents) orVariable() string { return cmp.Or(a.dir, os.Getenv(agentsVar)) }
