package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
)

// What to say about a command or a flag that there is not: what was meant, if that can be
// guessed, and else what there is.

// noCommand is for commands that have others, to which only an unknown one is an argument.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usagef(cmd, "unknown command %q; %s", args[0], meant(cmd, args[0]))
}

// meant says what to write instead of a command of cmd that there is not.
func meant(cmd *cobra.Command, word string) string {
	var use []string
	for _, sub := range visible(cmd) {
		if slices.Contains(sub.SuggestFor, word) {
			use = append(use, sub.CommandPath())
		}
	}
	if !cmd.HasParent() {
		for _, group := range visible(cmd) {
			for _, sub := range visible(group) {
				if group.Name() != "completion" && (sub.Name() == word || sub.HasAlias(word) || slices.Contains(sub.SuggestFor, word)) {
					use = append(use, sub.CommandPath())
				}
			}
		}
		if how := howToRun(word); how != "" {
			use = append(use, how)
		}
	}
	if len(use) > 0 {
		return "use " + strings.Join(use, ", or ")
	}
	var names []string
	for _, sub := range visible(cmd) {
		names = append(names, sub.Name())
	}
	if name := nearest(word, names); name != "" {
		return fmt.Sprintf("did you mean %q?", name)
	}
	return "there are " + strings.Join(names, ", ")
}

// visible are the commands of cmd that help lists.
func visible(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand()
	})
}

// howToRun says how limpet runs a word that is a script, a file or a program.
func howToRun(word string) string {
	st, err := os.Stat(word)
	_, notFound := exec.LookPath(word)
	switch {
	case strings.ContainsAny(word, " \t\n;|&$"):
		return "limpet run " + quoted([]string{word})
	case err == nil && st.Mode().IsRegular():
		return "limpet run -f " + quoted([]string{word}) + " for that file"
	case notFound == nil:
		return "limpet run -- " + quoted([]string{word}) + " for that program"
	}
	return ""
}

// flagError is what cobra asks about a flag that cannot be parsed. The hint is added where
// there is no such flag, and none that is spelt like it.
func flagError(cmd *cobra.Command, err error, hint string) error {
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok {
		return &usageError{Command: cmd.CommandPath(), Err: inWords(err)}
	}
	name := unknown.GetSpecifiedName()
	short := unknown.GetSpecifiedShortnames() != ""
	similar := ""
	if !short {
		similar = nearest(name, longFlags(cmd))
	}
	text := fmt.Sprintf("unknown flag: --%s; ", name)
	if all := unknown.GetSpecifiedShortnames(); all == name {
		text = fmt.Sprintf("unknown flag: -%s; ", name)
	} else if short {
		text = fmt.Sprintf("unknown flag: -%s in -%s; ", name, all)
	}
	switch {
	case similar != "":
		text += fmt.Sprintf("did you mean --%s?", similar)
	case !cmd.HasParent() && len(having(cmd, name, short)) > 0:
		text += fmt.Sprintf("it is a flag of %s, and comes behind that", strings.Join(having(cmd, name, short), ", "))
	default:
		text += cmp.Or(hint, "there are "+strings.Join(flagsOf(cmd), ", "))
	}
	return usagef(cmd, "%s", text)
}

// nearest returns the name that a mistyped word probably stands for: one that begins with the
// word, has its letters in another order, or differs in at most a third of them. It returns ""
// if there is no such name.
func nearest(word string, names []string) string {
	best, least := "", max(len(word)/3, 1)+1
	for _, name := range names {
		wrong := noun.Distance(word, name)
		if len(word) > 1 && (strings.HasPrefix(name, word) || sorted(word) == sorted(name)) {
			wrong = 1
		}
		if wrong < min(least, len(word)) {
			best, least = name, wrong
		}
	}
	return best
}

func sorted(word string) string {
	letters := []byte(word)
	slices.Sort(letters)
	return string(letters)
}

func longFlags(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return names
}

// having are the commands below cmd that have a flag.
func having(cmd *cobra.Command, name string, short bool) []string {
	var paths []string
	for _, sub := range visible(cmd) {
		if short && sub.Flags().ShorthandLookup(name) != nil || !short && sub.Flags().Lookup(name) != nil {
			paths = append(paths, sub.CommandPath())
		}
	}
	return paths
}

// flagsOf are the flags of a command, as they are written.
func flagsOf(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		switch {
		case f.Hidden:
		case f.Shorthand != "":
			names = append(names, "-"+f.Shorthand+" or --"+f.Name)
		default:
			names = append(names, "--"+f.Name)
		}
	})
	return names
}
