package sessions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/internal/script"
	"github.com/limpet-sh/limpet/session"
)

// row is a line of limpet session list --json. Its names are a promise: they only ever grow.
type row struct {
	Name    string    `json:"name"`
	State   string    `json:"state"` // new, idle, busy; mute: its keeper does not answer; ended
	Dir     string    `json:"dir"`
	Running string    `json:"running,omitempty"`
	Holder  string    `json:"holder,omitempty"`  // who asked for what runs
	PID     int       `json:"pid"`               // of its keeper
	Version string    `json:"version,omitempty"` // of its keeper
	Created time.Time `json:"created"`
	Used    time.Time `json:"last_used,omitzero"`

	Commands    int      `json:"commands"`
	Jobs        int      `json:"jobs"`
	Terminals   int      `json:"terminals"`
	Checkpoints []string `json:"checkpoints,omitempty"`

	ID         string         `json:"id"` // the same for all keepers that the session has had, and no other session's
	ForkedFrom *keeper.Parent `json:"forked_from,omitempty"`

	Ended *keeper.End `json:"ended,omitempty"`

	since time.Duration // since Used, by the machine that has the session; 0 if that has not said so
}

func rowOf(l keeper.Listed) row {
	r := row{Name: l.Record.Name, PID: l.Record.PID, Version: l.Record.Version, Created: l.Record.Created, Dir: l.Record.Spec.Dir}
	r.ID, r.ForkedFrom = l.Record.SessionID(), l.Record.ForkedFrom()
	switch i := l.Info; {
	case i != nil:
		r.State, r.Dir, r.Running, r.Used, r.since = string(i.State), i.Dir, i.Running, i.LastUsed, i.SinceUsed
		r.Holder = i.Holder
		r.Commands, r.Jobs, r.Terminals, r.Checkpoints = i.Commands, i.Jobs, i.Terminals, i.Checkpoints
	case l.Alive:
		r.State = "mute"
	default:
		r.State, r.Ended, r.PID = "ended", l.Record.End, 0
		if r.Ended != nil {
			r.Dir, r.Running = r.Ended.Dir, r.Ended.Running
		}
	}
	return r
}

// does is what the session does, for people, from which one it was forked, and by which limpet it is kept, if that is not the version. On is the
// target of its machine, or empty.
func (r row) does(now time.Time, version, on string) string {
	text := r.doing(now, on)
	if r.ForkedFrom != nil && r.State != "mute" { // What is to be done about that one is not to be made longer.
		text = strings.TrimPrefix(text+"; forked from "+r.ForkedFrom.Name, "; ")
	}
	if r.Ended == nil && r.Version != version {
		other, _ := apart(r.Version, version)
		text = strings.TrimPrefix(text+"; kept by limpet "+other, "; ")
	}
	return text
}

func (r row) doing(now time.Time, on string) string {
	switch {
	case r.Ended != nil:
		return r.Ended.Why + ", " + ago(now.Sub(r.Ended.At))
	case r.State == "mute":
		return "its keeper does not answer: " + keeper.CloseByForce + " " + flagOn(on) + r.Name
	case r.Running != "":
		return r.Running
	case r.Used.IsZero():
		return ""
	}
	return "used " + ago(cmp.Or(r.since, now.Sub(r.Used)))
}

// Held is what a session runs, in short and in one line, and for whom, if that is known.
func Held(info session.Info) string {
	const mostRunning, mostHolder = 60, 200
	text := runes.Brief(info.Running, mostRunning)
	if info.Holder != "" {
		text += " (for " + runes.Brief(info.Holder, mostHolder) + ")"
	}
	return text
}

// flagOn is the flag that names a machine, with a blank behind it; empty for this machine.
func flagOn(target string) string {
	if target == "" {
		return ""
	}
	return "--on " + script.Quote(target) + " "
}

func ago(d time.Duration) string { return max(d, 0).Round(time.Second).String() + " ago" }

func listCommand(p Program) *cobra.Command {
	var all, quiet, asJSON bool
	var on On
	cmd := &cobra.Command{
		Use:        "list [flags]",
		Aliases:    []string{"ls"},
		SuggestFor: []string{"ps", "status"},
		Short:      "List the sessions",
		Long: `List prints the sessions, the oldest first: where each is, and what it runs, and of a
fork from which session it came. It starts none.

With --json, each is one line of JSON on stdout. "forked_from" has the name that the other session
had, and its "id": another one may have that name by now.`,
		Example: `  limpet session list
  limpet session list --json | jq -r 'select(.state == "busy") | .name'`,
		Args: noun.Wants(0, 0, "takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if quiet && asJSON {
				return noun.Usagef(cmd, "only one of --quiet and --json can be used")
			}
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			r, leave, err := p.Place(ctx, on)
			if err != nil {
				return err
			}
			defer leave()
			list, err := r.List(ctx, all)
			if err != nil {
				return err
			}
			if !quiet && !asJSON {
				return Table(list, r.UpgradesTo(), on.target)
			}
			for _, one := range list {
				row := rowOf(one)
				if quiet {
					_, err = fmt.Println(row.Name)
				} else {
					err = noun.JSON(os.Stdout, row)
				}
				if err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVarP(&all, "all", "a", false, "list those too that have ended, of the last days")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the names alone")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each session as a line of JSON")
	addOn(cmd, &on)
	return cmd
}

// Table prints sessions for people; nothing if there are none. It says by which limpet one is kept, if that is another version. On is the target
// of their machine; empty means this one.
func Table(list []keeper.Listed, version, on string) error {
	if len(list) == 0 {
		return nil
	}
	rows := [][]string{{"NAME", "STATE", "DIR", "DOES"}}
	for _, one := range list {
		row := rowOf(one)
		rows = append(rows, []string{row.Name, row.State, row.Dir, row.does(time.Now(), version, on)})
	}
	return noun.Table(os.Stdout, rows...)
}

// find returns the session that is meant; exactly if only the whole name will do.
func find(ctx context.Context, cmd *cobra.Command, r keeper.Place, on On, said string, exactly bool) (keeper.Listed, error) {
	said = nameHere(said)
	list, err := r.List(ctx, false)
	if err != nil {
		return keeper.Listed{}, err
	}
	var names []string
	for _, one := range list {
		names = append(names, one.Record.Name)
	}
	name, found, err := noun.Pick(cmd, "session", said, names)
	switch {
	case err != nil:
		return keeper.Listed{}, err
	case !found || exactly && name != said:
		k, err := r.Session(ctx, said, nil) // It says how the last one has ended.
		if err == nil {
			k.Disconnect()
			return find(ctx, cmd, r, on, said, exactly) // It was made just now.
		}
		if e, ok := errors.AsType[*session.Error](err); ok && found && errors.Is(err, session.ErrNotFound) {
			e.Remedy = fmt.Sprintf("is it %s?", name)
		}
		if e, ok := errors.AsType[*session.Error](err); ok && e.Remedy == "" && errors.Is(err, session.ErrNotFound) {
			e.Remedy = "limpet session list" + strings.TrimRight(" "+flagOn(on.target), " ") + " has those that there are"
		}
		return keeper.Listed{}, err
	}
	for _, one := range list {
		if one.Record.Name == name {
			return one, nil
		}
	}
	return keeper.Listed{}, fmt.Errorf("%q: %w", said, session.ErrNotFound)
}

func infoCommand(p Program) *cobra.Command {
	var asJSON bool
	var on On
	cmd := &cobra.Command{
		Use:     "info [flags] name",
		Aliases: []string{"show"},
		Short:   "Show a session",
		Long: `Info shows what is known of a session. The beginning of its name will do where that means
one session.`,
		Example: "  limpet session info build",
		Args:    wantsNames(1, 1, "wants the name of a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			r, leave, err := p.Place(ctx, on)
			if err != nil {
				return err
			}
			defer leave()
			one, err := find(ctx, cmd, r, on, args[0], false)
			if err != nil {
				return err
			}
			if asJSON {
				return noun.JSON(os.Stdout, rowOf(one))
			}
			return noun.Table(os.Stdout, infoLines(one, r.UpgradesTo(), on.target)...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as a line of JSON")
	addOn(cmd, &on)
	return cmd
}

// infoLines are what is known of a session, for people, without what there is not. Version is that of the limpet which asks, on the target of
// the session's machine, or empty.
func infoLines(one keeper.Listed, version, on string) [][]string {
	row, from := rowOf(one), ""
	if row.ForkedFrom != nil {
		from = row.ForkedFrom.Name
	}
	lines := [][]string{
		{"name", row.Name}, {"forked from", from}, {"state", row.State}, {"dir", row.Dir}, {"running", row.Running}, {"for", row.Holder}, {"commands", fmt.Sprint(row.Commands)},
		{"jobs", fmt.Sprint(row.Jobs)}, {"terminals", fmt.Sprint(row.Terminals)}, {"checkpoints", strings.Join(row.Checkpoints, " ")},
		{"created", row.Created.Format(time.DateTime)}, {"keeper", fmt.Sprintf("pid %d", row.PID)}, {"ends with", one.Record.EndsWith()},
	}
	if row.Version != version {
		other, newer := apart(row.Version, version)
		lines = append(lines, []string{"version", other + "; limpet session upgrade " + flagOn(on) + row.Name + " has it kept by " + newer})
	}
	return slices.DeleteFunc(lines, func(line []string) bool { return line[1] == "" })
}

func closeCommand(p Program) *cobra.Command {
	var force bool
	var on On
	cmd := &cobra.Command{
		Use:        "close [flags] name...",
		Aliases:    []string{"end"},
		SuggestFor: []string{"stop", "kill", "rm", "delete"},
		Short:      "End sessions",
		Long: `Close ends sessions: the command that runs, the shell with what it has left running, its
jobs and its terminals.

--force kills the keeper, if that does not answer, or does not end in ten seconds; its shell and what
runs there is ended all the same.`,
		Example: `  limpet session close build
  limpet session close --force stuck`,
		Args: wantsNames(1, 1000, "wants the names of sessions"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			r, leave, err := p.Place(ctx, on)
			if err != nil {
				return err
			}
			defer leave()
			var failed error
			for _, said := range args {
				one, err := find(ctx, cmd, r, on, said, true)
				if err == nil {
					err = end(ctx, r, one, force)
				}
				failed = errors.Join(failed, err)
			}
			return failed
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "kill a keeper that does not answer")
	addOn(cmd, &on)
	return cmd
}

func end(ctx context.Context, r keeper.Place, one keeper.Listed, force bool) error {
	if force {
		return endByForce(ctx, r, one, forcePatience)
	}
	return closeKept(ctx, r, one.Record.Name)
}

func closeKept(ctx context.Context, r keeper.Place, name string) error {
	kept, err := r.Session(ctx, name, nil)
	if err != nil {
		return err
	}
	defer kept.Disconnect()
	return r.Close(ctx, kept)
}

// forcePatience is how long close --force waits for a session to end before it kills the keeper.
const forcePatience = 10 * time.Second

// endByForce closes a session, and kills its keeper if that fails or takes longer than patience: also a keeper that has been closing the session
// all the while, and refuses to open it.
func endByForce(ctx context.Context, r keeper.Place, one keeper.Listed, patience time.Duration) error {
	name := one.Record.Name
	if one.Info != nil { // Its keeper answers.
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := closeKept(limited, r, name)
		switch {
		case err == nil, errors.Is(err, session.ErrNotFound): // It has ended, maybe by itself just now.
			return nil
		case ctx.Err() != nil:
			return err
		}
	}
	if err := r.Kill(ctx, name); !errors.Is(err, session.ErrNotFound) {
		return err
	}
	return nil // As above.
}
