// Package environ makes the environment that a command gets by default, and checks
// one that somebody else made.
package environ

import (
	"os"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/command"
)

// The marks of what limpet starts: see package ipc.
const (
	SessionVar = "LIMPET_SESSION" // one value per shell or runner
	CommandVar = "LIMPET_COMMAND" // one value per one-shot command
	JobVar     = "LIMPET_JOB"     // one value per background job

	TerminalVar  = "LIMPET_TERMINAL"  // one value per terminal
	TerminalsVar = "LIMPET_TERMINALS" // one value per registry of terminals
)

// Marks are the names of all marks.
var Marks = []string{SessionVar, CommandVar, JobVar, TerminalVar, TerminalsVar}

// Mark reports whether the variable is a mark of what limpet starts. Nobody passes one
// on: what is started anew does not belong to what its program runs in.
func Mark(name string) bool { return slices.Contains(Marks, name) }

// What the name of a secret looks like. A command does not get it unless it is
// said so: whoever can make it run "env" would have it. Plain comparisons, not
// patterns: each start of a shell makes them for each variable.
var (
	secretNames = []string{
		"API_KEY", "TOKEN", "SECRET", "PASSWORD", "PGPASSWORD", "MYSQL_PWD", "GOOGLE_APPLICATION_CREDENTIALS",
	}
	secretPrefixes = []string{"AWS_", "AZURE_"}
	secretSuffixes = []string{
		"_API_KEY", "_APIKEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASSWD", "_PASSPHRASE", "_PRIVATE_KEY", "_CREDENTIALS",
		"_ACCESS_KEY", "_ACCESS_KEY_ID", "_SECRET_KEY", "_SECRET_ID", "_CONNECTION_STRING", "_DSN", "_PAT",
	}
)

// Secret reports whether a variable has the name of a secret.
func Secret(name string) bool {
	return slices.Contains(secretNames, name) ||
		slices.ContainsFunc(secretPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) }) ||
		slices.ContainsFunc(secretSuffixes, func(suffix string) bool { return strings.HasSuffix(name, suffix) })
}

// quiet is what keeps programs from waiting for somebody at a terminal that is
// not there: no pager, no editor, no password prompt.
var quiet = []string{
	"TERM=dumb",
	"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "SYSTEMD_PAGER=cat",
	"EDITOR=" + noEditor, "VISUAL=" + noEditor, "GIT_EDITOR=" + noEditor,
	"GIT_TERMINAL_PROMPT=0",
}

// noEditor fails at once. Programs run $EDITOR by sh -c with the file's name behind
// it, but scripts as they find it: it must be one word, which says nothing itself.
// Git says that there was a problem with its editor, and to use -m.
const noEditor = "false"

// Default returns the program's environment as a command gets it by default: see
// shell.DefaultEnv. What is in keep, which may be patterns, is passed on in any
// case.
func Default(keep ...string) []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if matches(keep, name) || !Secret(name) && !runsCode(name) {
			env = append(env, entry)
		}
	}
	for _, entry := range quiet {
		if name, _, _ := strings.Cut(entry, "="); !matches(keep, name) {
			env = append(env, entry)
		}
	}
	return lastWins(env)
}

// Nameless returns those entries that bash passes on to programs, but has no variables for: their names
// are no identifiers, as those of Windows and of job schedulers. No builtin lists or changes
// them. A function that was exported (BASH_FUNC_f%%) is bash's own.
func Nameless(env []string) (entries []string) {
	for _, entry := range lastWins(env) {
		name, _, _ := strings.Cut(entry, "=")
		if !syntax.ValidName(name) && !strings.HasPrefix(name, "BASH_FUNC_") {
			entries = append(entries, entry)
		}
	}
	return entries
}

// Terminal returns the program's environment as a program on a terminal of its own gets
// it: pagers and editors are welcome there, and what describes the terminal that this
// program may run in is not true of that one.
func Terminal() []string {
	var env []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if !Secret(name) && !runsCode(name) && !describesTerminal(name) {
			env = append(env, entry)
		}
	}
	return lastWins(env)
}

// terminalPrefixes begin what terminals and multiplexers tell what runs in them.
var terminalPrefixes = []string{"TERM_", "TMUX", "ZELLIJ", "KITTY_", "WEZTERM_", "ALACRITTY_", "GHOSTTY_", "ITERM_", "KONSOLE_", "VTE_", "VSCODE_"}

func describesTerminal(name string) bool {
	switch name {
	case "TERM", "TERMCAP", "COLUMNS", "LINES", "COLORTERM", "COLORFGBG", "STY", "WINDOW", "WINDOWID", "SSH_TTY", "INSIDE_EMACS":
		return true
	}
	return slices.ContainsFunc(terminalPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Check refuses entries that no environment can hold, by a [*command.EnvError].
// Names need not be shell identifiers here: what a program inherited is passed on.
func Check(env []string) error {
	for _, entry := range env {
		name, _, found := strings.Cut(entry, "=")
		switch {
		case !found || name == "":
			return &command.EnvError{Name: entry, Err: command.ErrNoAssignment}
		case strings.IndexByte(entry, 0) >= 0:
			return &command.EnvError{Name: name, Err: command.ErrNULInValue}
		}
	}
	return nil
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	})
}

func runsCode(name string) bool {
	switch name {
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "PS4":
		return true
	}
	return strings.HasPrefix(name, "BASH_FUNC_") || Mark(name)
}

// lastWins drops all but the last entry of each name, as os/exec does.
func lastWins(env []string) []string {
	seen := make(map[string]bool, len(env))
	kept := make([]string, 0, len(env))
	for _, entry := range slices.Backward(env) {
		name, _, _ := strings.Cut(entry, "=")
		if !seen[name] {
			seen[name] = true
			kept = append(kept, entry)
		}
	}
	slices.Reverse(kept)
	return kept
}

// OnTerminal returns an environment as a program on a terminal of its own gets it: without
// what Default has against pagers and editors, and what describes another terminal.
func OnTerminal(env []string) []string {
	return slices.DeleteFunc(OffTerminal(env), func(entry string) bool { return slices.Contains(quiet, entry) })
}

// OffTerminal returns an environment without what describes the terminal that its program may
// run in.
func OffTerminal(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return describesTerminal(name)
	})
}
