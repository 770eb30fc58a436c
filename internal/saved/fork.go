package saved

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/script"
)

// What a fork of bash, and a bash that starts anew in one, have of a state, and lack.

// StartFile is the variable by which bash would read a file before the script, which the
// session has not asked for.
const StartFile = "BASH_ENV"

// expandAliases is an option of shopt that the session's bash may have started with.
const expandAliases = "expand_aliases"

// StartLines returns lines that undo what a bash does to variables when it starts: it has them
// as in the state then.
func (s State) StartLines(n script.Names) string {
	var b strings.Builder
	has := s.declared()
	if level, set := has["SHLVL"].scalar(); set {
		fmt.Fprintf(&b, "SHLVL=%s\n", script.Quote(level)) // A bash that starts counts it up.
	}
	for _, name := range setAtStart {
		if _, set := has[name].scalar(); !set {
			fmt.Fprintf(&b, "%sunset -v %s\n", n, name)
		}
	}
	return b.String()
}

// ForFresh returns the pieces of the state that a fresh bash in a fork is given, and those that
// are withheld from it. Pristine is the state of the session's bash when it had just started. Left out is
// what the fresh bash has already: what is exported, the variables that are named, and the directory if the
// fork is elsewhere.
func (s State) ForFresh(pristine State, named []string, elsewhere bool) (given, withheld []Piece) {
	all := slices.DeleteFunc(s.difference(pristine, false), func(p Piece) bool {
		return p.inEnvironment() || p.Kind == kindVariable && slices.Contains(named, p.Name)
	})
	if s.Shopt(expandAliases) && pristine.Shopt(expandAliases) { // "bash -c" starts with it off.
		all = append([]Piece{s.option(expandAliases)}, all...)
	}
	if d, declared := s.declared()[StartFile]; declared { // It is not among the pieces if pristine has it, too.
		all = append(all, newPiece(kindVariable, d.name, d.text))
	}
	if elsewhere {
		all = slices.DeleteFunc(all, func(p Piece) bool { return p.Name == PieceDir || p.Kind == kindVariable && p.Name == "OLDPWD" })
	}
	given = s.restorable(slices.Clone(all))
	_, given = cut(given, func(p Piece) bool { return p.Kind == kindTrap && slices.Contains(notInForks, p.Name) })
	return given, newer(all, given)
}

// declared returns the variables by name.
func (s State) declared() map[string]declaration {
	has := make(map[string]declaration)
	for _, d := range declarations(s.part[partVariables]) {
		has[d.name] = d
	}
	return has
}

// setAtStart are variables that a bash sets when it starts without them.
var setAtStart = []string{"PATH", "TERM", "SHLVL", "SHELL", "HOSTNAME", "HOSTTYPE", "MACHTYPE", "OSTYPE", "OPTERR", "PS4"}

// notInForks are traps that a fork does not have: they are for the shell itself, or stay where
// they are unless functrace is on.
var notInForks = []string{"EXIT", "DEBUG", "RETURN"}

// NotInForks returns the pieces, by their names, that no fork has.
func NotInForks() (names []string) {
	for _, name := range notInForks {
		names = append(names, Piece{Kind: kindTrap, Name: name}.String())
	}
	return names
}

// OfScript reports whether the piece is a trap that ends with the script that sets it. In bash
// itself it would run behind limpet's own commands: for ERR, whenever a fork fails.
func (p Piece) OfScript() bool {
	return p.Kind == kindTrap && slices.Contains([]string{"ERR", "DEBUG", "RETURN"}, p.Name)
}

// inEnvironment reports whether a process that bash starts has the piece in its environment.
// Bash changes, or reads, some variables when it starts.
func (p Piece) inEnvironment() bool {
	return p.Kind == kindVariable && bytes.HasPrefix(p.text, []byte("declare -x ")) &&
		!slices.Contains([]string{"SHLVL", StartFile, "OLDPWD", "PWD", "IFS", "_"}, p.Name)
}

// UserTraps returns the traps that a fork does not have unless they are set again: those for
// signals, and for ERR.
func (s State) UserTraps() (traps []Piece) {
	for _, p := range aliasPieces(s.part[partAliases]) {
		if p.Kind == kindTrap && !slices.Contains(notInForks, p.Name) {
			traps = append(traps, p)
		}
	}
	return traps
}

// StatusVar holds a status while a fork writes its state. It is no part of that.
const StatusVar = "LIMPET_STATUS"

// SetTraps replaces the traps of the state by those that "trap -p" has printed. A fork prints them
// before it removes the traps for DEBUG, ERR and RETURN, and its state behind that. A trap with the
// seal in it is limpet's own, and left out.
func (s *State) SetTraps(printed []byte, seal string) {
	s.part[partAliases] = withTraps(s.part[partAliases], trapsIn(printed), seal)
}

// AddDisabled adds the disabled builtins that "enable -n" has printed.
func (s *State) AddDisabled(printed []byte) {
	for _, text := range statements(printed) {
		if bytes.HasPrefix(text, []byte("enable -n ")) {
			s.part[partSet] = append(s.part[partSet], text...)
		}
	}
}

// trapsIn leaves out what a DEBUG trap has printed before "trap -p" did.
func trapsIn(text []byte) []byte {
	if at := bytes.Index(text, []byte("trap -- ")); at >= 0 {
		return text[at:]
	}
	return nil
}

// withTraps puts the traps in the place of those among the aliases, which are fewer, but for
// limpet's own.
func withTraps(aliases, traps []byte, seal string) (all []byte) {
	for _, p := range aliasPieces(aliases) {
		if p.Kind != kindTrap {
			all = append(all, p.text...)
		}
	}
	kept, _ := userTraps(traps, seal)
	for _, p := range aliasPieces(kept) {
		if p.Kind == kindTrap { // Else a DEBUG trap, or set -x with BASH_XTRACEFD=1, has printed it.
			all = append(all, p.text...)
		}
	}
	return all
}
