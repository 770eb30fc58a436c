// Package sessions is the noun session of limpet's command line: the sessions that are kept by name.
package sessions

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/lazyregexp"
	"github.com/limpet-sh/limpet/internal/proc"
)

// Program is what the program is, for its sessions.
type Program struct {
	Version string
	Until   func(context.Context) (context.Context, func()) // a signal
	Note    func(format string, args ...any)                // tells the user something
	Ended   func(context.Context) error                     // what limpet ends with after a signal; nil if there was none
	Keeper  keeper.Program                                  // what it is as a keeper, besides these
}

// Place is where sessions are: on this machine, or on that of a target, if on is not empty. Call leave.
func (p Program) Place(ctx context.Context, on On) (place keeper.Place, leave func(), err error) {
	if on.target != "" {
		h, err := p.Dial(ctx, on)
		if err != nil {
			return nil, nil, err
		}
		return h, func() { _ = h.Disconnect() }, nil // Nothing temporary was made.
	}
	r, err := p.Registry()
	return r, func() {}, err
}

// Dial reaches the machine that --on names.
func (p Program) Dial(ctx context.Context, on On) (*host.Host, error) {
	return p.dial(ctx, on.target, p.HostOptions(on.agents))
}

// DialWhole is Dial for what only limpet as a whole does. The connection may be one of this program alone.
func (p Program) DialWhole(ctx context.Context, on On) (*host.Host, error) {
	opts := p.HostOptions(on.agents)
	opts.Whole = true
	return p.dial(ctx, on.target, opts)
}

func (p Program) dial(ctx context.Context, on string, opts *host.Options) (*host.Host, error) {
	t, err := host.Resolve(on)
	if err != nil {
		return nil, err
	}
	return host.Dial(ctx, t, opts)
}

// HostOptions are those by which it reaches machines: the user is told when limpet has to be brought there, and can be asked at a
// terminal.
func (p Program) HostOptions(agents Agents) *host.Options {
	const pause = 5 * time.Second
	var told time.Time
	return &host.Options{
		Agents: agents.orVariable(),
		Share:  true, Person: term.IsTerminal(int(os.Stdin.Fd())) && term.IsTerminal(int(os.Stderr.Fd())),
		Lost:       func(why error) { p.Note("%v; dialling again", why) },
		PassedOver: func(why error) { p.Note("%v; it is passed over", why) },
		Progress: func(sent, of int64) {
			if now := time.Now(); now.Sub(told) >= pause {
				told = now
				p.Note("copies limpet there: %d of %d MiB", sent>>20, of>>20)
			}
		},
	}
}

// Registry is that of the user's sessions.
func (p Program) Registry() (*keeper.Registry, error) {
	r, err := keeper.Open("")
	if err != nil {
		return nil, err
	}
	r.Version, r.Execute = p.Version, p.Execute
	return r, nil
}

// Execute has this program keep the session of a directory.
func (p Program) Execute(dir string) *exec.Cmd {
	cmd := exec.Command(proc.Self())
	cmd.Args = []string{"limpet", "session", "keeper", dir}
	return cmd
}

// Command is limpet session.
func Command(p Program, help *cobra.Command, noCommand cobra.PositionalArgs) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "session",
		Aliases: []string{"sessions"},
		Short:   "Sessions by name, which outlive every program",
		Long: `A session is a shell with a name. It stays where it was left, with its directory,
variables, functions and background processes, when the program that used it has
ended, and the next one finds it there: limpet run --session NAME. Each has a process of its own,
its keeper.

A session ends when it is closed, when it was not used for 24 hours and nothing runs in
it, and when the machine is shut down. Who asks for its name after that gets a new one, and
is told how the last one has ended.

A command that has an id, limpet run --session NAME --id ID, runs once, however often it is asked
for: by a script that is started again, by cron, by an agent that got no answer. It reads nothing from
standard input. Asked for again there are three answers:

  what came of it   its output and its exit code, if the session still has them (64 commands, or
                    an hour); it is waited for if it runs. Else its exit code, and a line on standard error
  not known         exit code 70: its keeper was killed while it ran, or it killed its shell. It may
                    have run, and is not run again: look for yourself, and take another ID
  it was never run  it runs now. So it is where nothing ran before, as with --no-wait

An ID belongs to a session's name and to a script: with another one the exit code is 2. The last 4096 are
remembered, also when the session has ended, for a week at most, and not when the machine is
started again.

Who can use the name can do what the session can: it is for programs of this user alone, and no
sandbox of limpet shows it.`,
		Example: `  limpet run -s build 'cd src && make'
  limpet run -s build 'pwd'
  limpet session list
  limpet session close build`,
		Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(listCommand(p), infoCommand(p), watchCommand(p), interruptCommand(p), forkCommand(p), checkpointCommand(p), rollbackCommand(p), resetCommand(p), upgradeCommand(p), closeCommand(p), keeperCommand(p), help)
	return cmd
}

// keeperCommand is what a keeper is executed as.
func keeperCommand(p Program) *cobra.Command {
	return &cobra.Command{
		Use:    "keeper",
		Short:  "Keep one session; for limpet itself",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return noun.Usagef(cmd, "%w", keeper.ErrNotForPeople)
			}
			kept := p.Keeper
			kept.Version, kept.Execute = p.Version, p.Execute
			err := keeper.Serve(args[0], kept)
			if errors.Is(err, keeper.ErrNotForPeople) {
				return noun.Usagef(cmd, "%w", err)
			}
			return err
		},
	}
}

// Here is the name that stands for the session of a project.
const Here = "."

// NameOf returns the name that is meant: Here is that of the project which a directory is in, by the
// directory above it that has a .git, or its own.
func NameOf(said, dir string) string {
	if said != Here {
		return said
	}
	root := dir
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			root = at
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	const most = 40
	base := unfit().ReplaceAllString(filepath.Base(root), "-")
	if len(base) > most {
		base = base[:most]
	}
	return fmt.Sprintf("at-%s-%x", base, sha256.Sum256([]byte(root)))[:len("at-")+len(base)+1+8]
}

// unfit is what no name can have.
var unfit = lazyregexp.New(`[^A-Za-z0-9._-]`)
