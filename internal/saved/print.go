package saved

import (
	"strings"

	"github.com/limpet-sh/limpet/internal/script"
)

// The parts of a saved state. NUL bytes, which no variable can hold, stand between them.
const (
	partDir       = iota
	partFunction  // the functions that bash was in
	partWords     // the positional parameters, a dash, and the directories of the stack; all but the dash quoted
	partOptions   // shopt, umask
	partVariables // with their attributes
	partFunctions
	partMarks   // attributes of functions
	partAliases // aliases and traps
	partSet     // set -o, completions, disabled builtins
	partSoft    // limits
	partHard
	partMore // what else was asked for: see [More]
	partSeal
	parts
)

// More is what bash prints besides its state.
type More int

const (
	Nothing     More = iota
	Descriptors      // the paths of its descriptors: for a bash that ends
	Names            // its builtins, and the files of programs that it remembers: for [State.Live]
)

// Commands is a command list by which bash prints its state, sealed by id, with builtins alone.
func Commands(n script.Names, id string, more More) string {
	commands := []string{
		`printf '%s\0' "${PWD-}"`,
		`printf '%s ' "${FUNCNAME[@]-}"`, `printf '\0'`,
		`printf '%s ' "${@+"${@@Q}"}" - "${DIRSTACK[@]+"${DIRSTACK[@]@Q}"}"`, `printf '\0'`,
		"shopt -p", "umask -p", `printf '\0'`,
		"declare -p", `printf '\0'`,
		"declare -f", `printf '\0'`,
		"declare -F", `printf '\0'`,
		"alias -p", "trap -p", `printf '\0'`,
		"set +o", "complete -p", "enable -n", `printf '\0'`,
		"ulimit -Sa", `printf '\0'`,
		"ulimit -Ha", `printf '\0'`,
	}
	switch more {
	case Descriptors:
		commands = append(commands, `printf '%s ' /proc/self/fd/*`)
	case Names:
		commands = append(commands, "enable -a", "hash -l")
	}
	commands = append(commands, `printf '\0%s' `+id)
	return string(n) + strings.Join(commands, "; "+string(n))
}
