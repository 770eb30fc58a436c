package sessions

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/session"
)

// wantsNames is noun.Wants for arguments that are names of sessions.
func wantsNames(least, most int, what string) cobra.PositionalArgs {
	number := noun.Wants(least, most, what)
	return func(cmd *cobra.Command, args []string) error {
		if err := number(cmd, args); err != nil {
			return err
		}
		return checkNames(cmd, args)
	}
}

// wantsCheckpoint wants the name of a session, and that of a checkpoint.
func wantsCheckpoint(what string) cobra.PositionalArgs {
	number := noun.Wants(2, 2, what)
	return func(cmd *cobra.Command, args []string) error {
		if err := number(cmd, args); err != nil {
			return err
		}
		if err := checkNames(cmd, args[:1]); err != nil {
			return err
		}
		return checkName(cmd, "checkpoint", args[1])
	}
}

// checkNames refuses what can be the name of no session, before anything is done with one.
func checkNames(cmd *cobra.Command, args []string) error {
	for _, said := range args {
		if err := checkName(cmd, "session", nameHere(said)); err != nil {
			return err
		}
	}
	return nil
}

func checkName(cmd *cobra.Command, kind, name string) error {
	switch {
	case name == "":
		return noun.Usagef(cmd, `"" is no %s; is a variable empty?`, kind)
	case !session.ValidName(name): // Those of checkpoints have the same form.
		return noun.Usagef(cmd, "%q: %w", name, session.ErrName)
	}
	return nil
}

// nameHere is NameOf for the directory of this program.
func nameHere(said string) string {
	if dir, err := os.Getwd(); err == nil {
		return NameOf(said, dir)
	}
	return said
}
