package saved

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
	"github.com/limpet-sh/limpet/internal/script"
)

// What a state has besides variables, functions, aliases, traps and options.

const (
	kindCompletion = "completion of"
	kindDisabled   = "disabled builtin"
	kindLimit      = "limit"
	kindStack      = "stack of directories"
)

// words returns the positional parameters, and the directories of the stack without the
// working directory.
func (s State) words() (parameters, stack [][]byte) {
	words := quotedWords(s.part[partWords])
	i := slices.IndexFunc(words, func(word []byte) bool { return string(word) == "-" })
	if i < 0 {
		return nil, nil
	}
	return words[:i], words[min(i+2, len(words)):]
}

// settings returns the statements of partSet that begin with a word.
func (s State) settings(word string) (all [][]byte) {
	for _, text := range statements(s.part[partSet]) {
		if bytes.HasPrefix(text, []byte(word+" ")) {
			all = append(all, text)
		}
	}
	return all
}

// completionPieces takes the output of "complete -p" apart.
func (s State) completionPieces() (all []Piece) {
	for _, text := range s.settings("complete") {
		all = append(all, newPiece(kindCompletion, lastWord(text), text))
	}
	return all
}

// needed are the builtins by which limpet has bash read commands, save its state and take
// it. A shell in which one of them is disabled, or is a function that nothing leads past, cannot
// be had back.
var needed = []string{
	".", ":", "alias", "builtin", "cd", "command", "complete", "declare", "enable", "eval", "exit", "kill", "printf", "read",
	"return", "set", "shopt", "test", "trap", "ulimit", "umask", "unalias", "unset",
}

// disabled returns the names of the builtins that are disabled.
func (s State) disabled() (names []string) {
	for _, text := range s.settings("enable") {
		names = append(names, lastWord(text))
	}
	return names
}

func (s State) disabledSince(before State) (all []Piece) {
	now, had := s.disabled(), before.disabled()
	for _, name := range had {
		if !slices.Contains(now, name) {
			all = append(all, newPiece(kindDisabled, name, fmt.Appendf(nil, "enable %s", script.Quote(name))))
		}
	}
	for _, name := range now {
		if !slices.Contains(had, name) {
			all = append(all, newPiece(kindDisabled, name, fmt.Appendf(nil, "enable -n %s", script.Quote(name))))
		}
	}
	return all
}

// limitLine is a line of "ulimit -a": "open files (-n) 1024".
var limitLine = lazyregexp.New(`(?m)-([a-zA-Z])\) +(\w+)$`)

// unsettable is the size of a pipe, which no shell can set.
const unsettable = "p"

// limits returns the limits by the letters of their options.
func limits(script []byte) (letters []string, values map[string]string) {
	values = make(map[string]string)
	for _, found := range limitLine().FindAllSubmatch(script, -1) {
		if letter := string(found[1]); letter != unsettable {
			letters = append(letters, letter)
			values[letter] = string(found[2])
		}
	}
	return letters, values
}

// limitsSince returns what lowers the limits, or raises them: the hard ones first where that
// gives room, else last. The size of a file comes last of all.
func (s State) limitsSince(before State) (all []Piece) {
	letters, soft := limits(s.part[partSoft])
	_, hard := limits(s.part[partHard])
	_, hadSoft := limits(before.part[partSoft])
	_, hadHard := limits(before.part[partHard])
	for _, letter := range letters {
		p := Piece{Kind: kindLimit, Name: "(ulimit -" + letter + ")"}
		if soft[letter] != hadSoft[letter] {
			p.steps = append(p.steps, call("ulimit -S -%s %s", letter, soft[letter]))
		}
		if hard[letter] != hadHard[letter] {
			p.steps = append(p.steps, call("ulimit -H -%s %s", letter, hard[letter]))
			if raised(hard[letter], hadHard[letter]) {
				slices.Reverse(p.steps)
			}
		}
		if len(p.steps) > 0 {
			p.text = bytes.Join([][]byte{[]byte(soft[letter]), []byte(hard[letter])}, []byte(" "))
			all = append(all, p)
		}
	}
	last, all := cut(all, func(p Piece) bool { return p.Name == "(ulimit -f)" })
	return append(all, last...)
}

// Descriptors returns how many descriptors a piece lets bash have, if it is a limit of that.
func (p Piece) Descriptors() (most int, limited bool) {
	if p.Kind != kindLimit || p.Name != "(ulimit -n)" {
		return 0, false
	}
	soft, _, _ := strings.Cut(string(p.text), " ")
	most, err := strconv.Atoi(soft)
	return most, err == nil // Else it is unlimited.
}

// raised reports whether a limit is higher than another: a number, or unlimited.
func raised(limit, than string) bool {
	if limit == "unlimited" || than == "unlimited" {
		return limit == "unlimited"
	}
	return len(limit) > len(than) || len(limit) == len(than) && limit > than
}
