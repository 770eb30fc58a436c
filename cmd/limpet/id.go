package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/terminal"
)

// withID are things that are named by ids.
type withID struct {
	kind    string
	command string // on them
	dir     string // of a session by name, that has theirs
	prefix  string // of ids
	none    error
}

var (
	aJob      = withID{kind: "job", command: "jobs", dir: "jobs", prefix: "job-", none: jobs.ErrNotFound}
	aTerminal = withID{kind: "terminal", command: "term", dir: "terminals", prefix: "term-", none: terminal.ErrNotFound}
)

// pick returns the id that is meant by a text, which may be a part of it. The place is where all of them are, for
// the error.
func (w withID) pick(cmd *cobra.Command, said string, all []string, place string) (string, error) {
	id, found, err := noun.PickID(cmd, w.kind, said, all)
	if err != nil || found {
		return id, err
	}
	if session, ids := w.elsewhere(cmd, said); session != "" {
		return "", fmt.Errorf("%q: %w in %s; the session %s has %s: say --session %[4]s", said, w.none, place, quoted([]string{session}), noun.Some(ids))
	}
	hint := "limpet " + w.command + " list" + sameWhere(cmd) + " has those that there are"
	if near := noun.Near(said, all); len(near) > 0 {
		hint = "is it one of these? " + noun.Some(near)
	}
	return "", fmt.Errorf("%q: %w in %s: it never was, or was forgotten; %s", said, w.none, place, hint)
}

// elsewhere finds what is meant in the sessions by name of this machine, but for that in which it was looked for; ""
// if it is in none. It asks nobody: their directories have the names.
func (w withID) elsewhere(cmd *cobra.Command, said string) (session string, ids []string) {
	if given(cmd, "state") != "" || given(cmd, "on") != "" {
		return "", nil
	}
	r, err := keeper.Open("")
	if err != nil {
		return "", nil // A command on sessions would fail for it, and say why.
	}
	for _, name := range r.Names() {
		all, err := os.ReadDir(filepath.Join(r.StateDir(name), w.dir))
		if err != nil || name == given(cmd, "session") {
			continue // It has none, or was asked.
		}
		for _, file := range all {
			id := strings.TrimSuffix(file.Name(), ".json")
			if strings.HasPrefix(id, w.prefix) {
				ids = append(ids, id)
			}
		}
		if ids = noun.Meant(said, ids); len(ids) > 0 {
			return name, ids
		}
	}
	return "", nil
}

// sameWhere are the flags of a command that say where things are, for a message that names another command.
func sameWhere(cmd *cobra.Command) (flags string) {
	for _, name := range []string{"state", "session", "on", "agents"} {
		if value := given(cmd, name); value != "" {
			flags += " --" + name + " " + quoted([]string{value})
		}
	}
	return flags
}

// given is the value that a flag was given; "" if it was not, or the command has none of the name.
func given(cmd *cobra.Command, name string) string {
	if flag := cmd.Flags().Lookup(name); flag != nil && flag.Changed {
		return flag.Value.String()
	}
	return ""
}
