package saved

import (
	"bytes"
	"maps"
	"slices"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/script"
)

// Since returns the pieces that bring a shell whose state is before to s, in an order in
// which [Script] can restore them. That is what a script has changed that ran in a fork of
// the shell.
//
// Left out are the variables that bash keeps itself, the mark of the session, the exit traps, and
// the options in endWithScript, if they were switched on.
func (s State) Since(before State) []Piece { return s.restorable(s.difference(before, true)) }

// Pieces returns what brings s back in a bash that has just started, and whose state is fresh.
func (s State) Pieces(fresh State) []Piece { return s.restorable(s.difference(fresh, false)) }

// Without leaves out what takes something away that a shell never had: see ipc.ForkEnd.
func Without(pieces []Piece, lacks []string) []Piece {
	return slices.DeleteFunc(pieces, func(p Piece) bool { return p.removes && slices.Contains(lacks, p.String()) })
}

// restorable leaves out what would keep bash from reading any more commands: see needed.
func (s State) restorable(pieces []Piece) []Piece {
	hidden := NamesAfter(script.ViaBuiltin, s.pieces(kindFunction)) == script.Plain
	return slices.DeleteFunc(pieces, func(p Piece) bool {
		return slices.Contains(needed, p.Name) && (p.Kind == kindDisabled || hidden && p.isFunction() && !hides(p))
	})
}

// endWithScript are options that a script sets for itself: if it has switched them on, they
// end with it.
var endWithScript = []string{
	"errexit", "nounset", "pipefail", "noexec", "xtrace", "verbose", "onecmd", "monitor", "history", "histexpand",
}

// difference returns what brings a shell from before to s. What is in the way goes first.
// Then come the options that decide how functions are read, and, as late as can be, what
// bash runs by itself, what limits it, and what hides its builtins.
func (s State) difference(before State, script bool) []Piece {
	shopt := newer(optionPieces(statements(s.part[partOptions])), optionPieces(statements(before.part[partOptions])))
	set := newer(optionPieces(s.settings("set")), optionPieces(before.settings("set")))
	if script {
		set = slices.DeleteFunc(set, func(p Piece) bool {
			return bytes.HasPrefix(p.text, []byte("set -o ")) && slices.Contains(endWithScript, p.Name)
		})
	}
	history, set := cut(set, func(p Piece) bool { return p.Name == "history" }) // It reads HISTFILE, which may be a fifo.
	functions := slices.Concat(newer(s.pieces(kindFunction), before.pieces(kindFunction)), s.marksSince(before))
	hiding, functions := cut(functions, hides)
	traps := newer(s.traps(script), before.traps(script))
	running, traps := cut(traps, Piece.runs)
	removed, variables := s.variablesSince(before, script)
	late, variables := cut(variables, func(p Piece) bool { return slices.Contains(lateVariables, p.Name) })
	prompts, variables := cut(variables, Piece.runs)

	all := slices.Concat(
		before.plainOptions(),
		gone(before.traps(script), s.traps(script), noTrap),
		gone(before.pieces(kindAlias), s.pieces(kindAlias), "unalias -- "),
		gone(before.pieces(kindFunction), s.pieces(kindFunction), "unset -f -- "),
		gone(before.pieces(kindCompletion), s.pieces(kindCompletion), "complete -r "),
		removed,
		s.directorySince(before),
		shopt,
		history,
		variables,
		s.parametersSince(before),
	)
	if len(functions) > 0 {
		// Neither may posix mode refuse a name, nor an alias change what is read. What was read under
		// extglob is not read without; but what was read without means the same under it.
		all = slices.Concat(all, []Piece{do("set +o posix"), do("shopt -u expand_aliases"), do("shopt -s extglob")}, functions)
	}
	all = slices.Concat(all,
		newer(s.pieces(kindAlias), before.pieces(kindAlias)),
		newer(s.pieces(kindCompletion), before.pieces(kindCompletion)),
		late,
		set,
		traps,
	)
	if len(functions)+len(late)+len(set) > 0 || before.option("keyword").set() {
		all = append(all, s.forcedOptions()...)
	}
	return slices.Concat(all, s.disabledSince(before), s.limitsSince(before), prompts, running, hiding)
}

// hides reports whether the piece is a function that hides the builtins by which others are
// reached.
func hides(p Piece) bool { return p.isFunction() && (p.Name == "builtin" || p.Name == "command") }

func (p Piece) isFunction() bool { return p.Kind == kindFunction || p.Kind == kindMark }

// lateVariables set an option when they are set, or open a file.
var lateVariables = []string{"POSIXLY_CORRECT", "IGNOREEOF", "HISTFILE"}

// plainOptions switches off what would change how the pieces themselves are read.
func (s State) plainOptions() []Piece {
	if s.option("keyword").set() {
		return []Piece{do("set +o keyword")}
	}
	return nil
}

// forcedOptions are those that are set while pieces are read, or that bash sets when posix
// mode is switched on or off.
func (s State) forcedOptions() (all []Piece) {
	for _, name := range []string{
		"keyword", "posix", "expand_aliases", "extglob", "inherit_errexit", "interactive_comments", "shift_verbose", "sourcepath",
	} {
		if p := s.option(name); p.text != nil { // Else this bash has no such option.
			all = append(all, p)
		}
	}
	return all
}

// option returns the command that sets an option of shopt, or of set -o, as it is in the state.
func (s State) option(name string) Piece {
	for _, p := range optionPieces(append(statements(s.part[partOptions]), s.settings("set")...)) {
		if p.Name == name {
			p.Kind, p.Name = "", ""
			return p
		}
	}
	return Piece{}
}

// set reports whether it is an option that is switched on.
func (p Piece) set() bool {
	return bytes.HasPrefix(p.text, []byte("set -o ")) || bytes.HasPrefix(p.text, []byte("shopt -s "))
}

// cut takes those pieces out for which is reports true.
func cut(pieces []Piece, is func(Piece) bool) (out, rest []Piece) {
	for _, p := range pieces {
		if is(p) {
			out = append(out, p)
		} else {
			rest = append(rest, p)
		}
	}
	return out, rest
}

// newer returns the pieces that are not among those before.
func newer(pieces, before []Piece) []Piece {
	had := make(map[string][]byte, len(before))
	for _, p := range before {
		had[p.String()] = p.text
	}
	return slices.DeleteFunc(pieces, func(p Piece) bool {
		text, ok := had[p.String()]
		return ok && bytes.Equal(text, p.text)
	})
}

// gone returns what removes the pieces that were there before and are not now: a command,
// and the name.
func gone(before, now []Piece, command string) (all []Piece) {
	has := make(map[string]bool, len(now))
	for _, p := range now {
		has[p.String()] = true
	}
	for _, p := range before {
		if !has[p.String()] {
			p := newPiece(p.Kind, p.Name, []byte(command+script.Quote(p.Name)))
			p.removes = true
			all = append(all, p)
		}
	}
	return all
}

// pieces returns the pieces of one kind.
func (s State) pieces(kind string) []Piece {
	switch kind {
	case kindFunction:
		return functionPieces(s.part[partFunctions], s.part[partMarks])
	case kindCompletion:
		return s.completionPieces()
	}
	return slices.DeleteFunc(aliasPieces(s.part[partAliases]), func(p Piece) bool { return p.Kind != kind })
}

// traps returns the traps; those of a script do without the exit trap, which ends with it.
func (s State) traps(script bool) []Piece {
	return slices.DeleteFunc(s.pieces(kindTrap), func(p Piece) bool { return script && p.Name == "EXIT" })
}

// marksSince returns what changes the attributes of functions.
func (s State) marksSince(before State) (all []Piece) {
	had := make(map[string]string)
	for _, m := range marks(before.part[partMarks]) {
		had[m.name] = m.letters
	}
	for _, m := range marks(s.part[partMarks]) {
		p := Piece{Kind: kindMark, Name: m.name}
		if off := without(had[m.name], m.letters); off != "" {
			p.steps = append(p.steps, call("declare -f +%s -- %s", off, script.Quote(m.name)))
		}
		if on := without(m.letters, had[m.name]); on != "" {
			p.steps = append(p.steps, call("declare -f%s -- %s", on, script.Quote(m.name)))
		}
		if len(p.steps) > 0 {
			all = append(all, p)
		}
	}
	return all
}

// directorySince returns what goes to the directory, and sets what cd has changed by that.
func (s State) directorySince(before State) (all []Piece) {
	moves := s.Dir != before.Dir && s.Dir != ""
	_, stack := s.words()
	_, had := before.words()
	if !slices.EqualFunc(stack, had, bytes.Equal) {
		p := Piece{Kind: kindStack, Name: "(pushd)", text: s.part[partWords], steps: []step{call("dirs -c")}}
		for _, dir := range slices.Backward(stack) {
			p.steps = append(p.steps, call("pushd -n -- %s", dir))
		}
		all = append(all, p)
	}
	if moves {
		all = append(all, newPiece(kindWhole, PieceDir, []byte("cd -- "+script.Quote(s.Dir))))
	}
	return all
}

func (s State) parametersSince(before State) []Piece {
	words, _ := s.words()
	had, _ := before.words()
	if slices.EqualFunc(words, had, bytes.Equal) {
		return nil
	}
	return []Piece{newPiece(kindWhole, "positional parameters", slices.Concat([]byte("set -- "), bytes.Join(words, []byte(" "))))}
}

// keptByBash are variables that bash computes, or sets as it runs: assigned, they are
// another thing, or none.
var keptByBash = []string{
	"_", "BASH", "BASHOPTS", "BASHPID", "BASH_ALIASES", "BASH_ARGC", "BASH_ARGV", "BASH_CMDS", "BASH_COMMAND",
	"BASH_EXECUTION_STRING", "BASH_LINENO", "BASH_SOURCE", "BASH_SUBSHELL", "BASH_VERSINFO", "BASH_VERSION",
	"DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS", "HISTCMD",
	"LINENO", "PIPESTATUS", "PPID", "RANDOM", "SHELLOPTS", "SRANDOM", "UID", environ.SessionVar, StatusVar,
}

// countedByBash are variables that bash changes as it runs, and that go on from what they
// are assigned.
var countedByBash = []string{"COLUMNS", "LINES", "SECONDS"}

// variablesSince returns what removes variables, and what changes them.
func (s State) variablesSince(before State, script bool) (removed, changed []Piece) {
	moves := s.Dir != before.Dir && s.Dir != ""
	had := make(map[string]declaration)
	for _, d := range declarations(before.part[partVariables]) {
		had[d.name] = d
	}
	kept := func(name string) bool {
		return name == "" || slices.Contains(keptByBash, name) || script && slices.Contains(countedByBash, name)
	}
	has := make(map[string]bool)
	for _, d := range declarations(s.part[partVariables]) {
		has[d.name] = true
		p, differs := d.since(had[d.name])
		switch {
		case slices.Contains(attributeOnly, d.name):
			if p, differs := d.attributesSince(had[d.name]); differs {
				changed = append(changed, p)
			}
		case kept(d.name):
		case moves && d.name == "OLDPWD", moves && d.name == "PWD" && string(s.part[partDir]) != s.Dir:
			// Else it is as cd leaves it. PWD may be made up.
			p, _ := d.since(declaration{d.name, []byte("declare -x " + d.name + "=\"\"\n")})
			changed = append(changed, p)
		case moves && d.name == "PWD", !differs:
		default:
			changed = append(changed, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(had)) {
		if d := had[name]; !has[name] && !kept(name) {
			p := newPiece(kindVariable, name, d.unset().text)
			p.removes = true
			if moves && (name == "PWD" || name == "OLDPWD") {
				changed = append(changed, p) // Behind cd, which sets it.
			} else {
				removed = append(removed, p)
			}
		}
	}
	return removed, changed
}

// attributeOnly are variables that no shell can set, or must not; but a command may have exported
// them, or made them readonly.
var attributeOnly = []string{"BASHOPTS", "EUID", "PPID", "SHELLOPTS", "UID", environ.SessionVar}
