package ipc

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Piece is one thing of a saved state: a variable, a function, an alias, a trap, an
// option. Each is brought back by itself, so that one which bash cannot read back takes
// no other along.
type Piece struct {
	Kind string // "variable", say; empty for a step that is no part of the state
	Name string

	text    []byte // the script that brings it back
	builtin bool   // the script begins with a builtin, and there may be a function of that name
}

// The kinds of pieces that are compared in ways of their own.
const (
	kindVariable = "variable"
	kindFunction = "function"
	kindMark     = "attributes of the function"
	kindTrap     = "trap for"
)

func (p Piece) String() string { return p.Kind + " " + p.Name }

// SizeOf returns how many bytes bash reads for the pieces.
func SizeOf(pieces []Piece) (size int) {
	for _, p := range pieces {
		size += len(p.text)
	}
	return size
}

// Pieces returns what brings the state back in the directory dir, in order: options that
// decide how functions parse come first, "set -o" last.
func (s State) Pieces(dir string) []Piece {
	var variables, late []Piece
	for _, p := range variablePieces(s.part[partVariables]) {
		if slices.Contains(switches, p.Name) {
			late = append(late, p)
		} else {
			variables = append(variables, p)
		}
	}
	goTo := Piece{text: fmt.Appendf(nil, "cd -- %s\n", Quote(dir)), builtin: true}
	all := slices.Concat(
		[]Piece{goTo}, // Before the variables, which have PWD and OLDPWD as they were.
		optionPieces(s.part[partOptions]),
		variables,
		functionPieces(s.part[partFunctions], s.part[partMarks]),
		markPieces(s.part[partMarks]),
		aliasPieces(s.part[partAliases]),
		late,
		optionPieces(s.part[partSet]),
	)
	if dir != string(s.part[partDir]) {
		// It was saved in a directory that is gone, or was a request's own.
		all = append(all, goTo)
	}
	return all
}

// switches are variables that set an option when they are set: functions whose names are no
// identifiers cannot be read in posix mode.
var switches = []string{"POSIXLY_CORRECT", "IGNOREEOF"}

func optionPieces(script []byte) (all []Piece) {
	for _, text := range statements(script) {
		p := Piece{Kind: "option", Name: lastWord(text), text: text, builtin: true}
		if bytes.HasPrefix(text, []byte("umask ")) {
			p.Kind, p.Name = "the", "umask"
		}
		all = append(all, p)
	}
	return all
}

func variablePieces(script []byte) (all []Piece) {
	for _, d := range declarations(script) {
		if d.name != SessionVar { // Bash has it from its start, and it may be another one by now.
			all = append(all, Piece{Kind: kindVariable, Name: d.name, text: d.text})
		}
	}
	return all
}

// functionPieces takes the output of "declare -f" apart, which is in the order of
// "declare -F". A body may have a line that looks like the head of another function.
func functionPieces(script, marks []byte) (all []Piece) {
	heads := statements(marks)
	for line := range bytes.Lines(script) {
		if len(heads) > 0 && string(line) == lastWord(heads[0])+" () \n" {
			all = append(all, Piece{Kind: kindFunction, Name: lastWord(heads[0])})
			heads = heads[1:]
		}
		if len(all) > 0 { // Else a command has forged it.
			last := &all[len(all)-1]
			last.text = append(last.text, line...)
		}
	}
	return all
}

func markPieces(script []byte) (all []Piece) {
	for _, text := range statements(script) {
		all = append(all, Piece{Kind: kindMark, Name: lastWord(text), text: text, builtin: true})
	}
	return all
}

// aliasPieces takes the output of "alias -p" and "trap -p" apart. In posix mode
// bash leaves out the word alias.
func aliasPieces(script []byte) (all []Piece) {
	for _, text := range statements(script) {
		p := Piece{Kind: kindTrap, Name: lastWord(text), text: text, builtin: true}
		if !bytes.HasPrefix(text, []byte("trap -- ")) {
			definition := bytes.TrimPrefix(bytes.TrimPrefix(text, []byte("alias ")), []byte("-- "))
			name, _, _ := bytes.Cut(definition, []byte("="))
			p.Kind, p.Name, p.text = "alias", string(name), slices.Concat([]byte("alias -- "), definition)
		}
		all = append(all, p)
	}
	return all
}

// lastWord returns what is behind the last space of a statement.
func lastWord(text []byte) string {
	text = bytes.TrimRight(text, "\n")
	return string(text[bytes.LastIndexByte(text, ' ')+1:])
}

// Names is how to reach a builtin in a bash that has the functions of the state.
func (s State) Names() Names {
	has := func(name string) bool {
		return slices.ContainsFunc(statements(s.part[partMarks]), func(text []byte) bool { return lastWord(text) == name })
	}
	switch {
	case !has("builtin"):
		return ViaBuiltin
	case !has("command"):
		return ViaCommand
	}
	return Plain
}

// Restore writes the script that brings pieces of a state back, and returns the lines
// that run it and report. The status in the report is 0 if bash has read the script
// to its end, whatever became of each piece.
func (d *Dir) Restore(n Names, pieces []Piece, id string) (lines string, err error) {
	var script bytes.Buffer
	for _, p := range pieces {
		if p.builtin {
			script.WriteString(string(n))
		}
		script.Write(p.text)
	}
	fmt.Fprintf(&script, "%s:\n", n)
	if err := d.writeEval(script.String()); err != nil {
		return "", err
	}
	// An error that gives up the script gives up the first line.
	return fmt.Sprintf("%s. %s >/dev/null 2>&1; %s\n", n, Quote(d.eval.path), report(n, id)) + closingLine(n, id), nil
}

// Missing returns the pieces of the state that a bash does not have, or has otherwise,
// by the state that was saved of it.
func (s State) Missing(of State) (missing []Piece) {
	has := make(map[string][]byte)
	for _, p := range of.Pieces(of.Dir) {
		has[p.String()] = p.text
	}
	pieces := s.Pieces(s.Dir)
	runs := slices.ContainsFunc(pieces, Piece.runs)
	for _, p := range pieces {
		text, found := has[p.String()]
		same := func() bool {
			return p.changes() || bytes.Equal(text, p.text) || p.Kind == kindVariable && (runs || sameMap(text, p.text))
		}
		if p.Kind != "" && p.Name != "" && !(found && same()) {
			missing = append(missing, p)
		}
	}
	// A function that is missing says enough.
	return slices.DeleteFunc(missing, func(p Piece) bool {
		return p.Kind == kindMark && slices.ContainsFunc(missing, func(f Piece) bool { return f.Kind == kindFunction && f.Name == p.Name })
	})
}

// bashOwn are variables that bash sets itself, as are those that begin with BASH and
// EPOCH; see bash(1), Shell Variables.
var bashOwn = []string{
	"_", "COLUMNS", "COMP_WORDBREAKS", "DIRSTACK", "EUID", "FUNCNAME", "GROUPS", "HISTCMD", "LINENO", "LINES", "OLDPWD",
	"PIPESTATUS", "PPID", "PWD", "RANDOM", "SECONDS", "SHELLOPTS", "SRANDOM", "UID",
}

// runs reports whether bash runs the piece by itself, between commands: it may have changed
// any variable since it was restored.
func (p Piece) runs() bool {
	switch p.Kind {
	case kindVariable:
		return p.Name == "PROMPT_COMMAND" || (p.Name == "PS0" || p.Name == "PS1") && bytes.ContainsAny(p.text, "$`")
	case kindTrap:
		return slices.Contains([]string{"DEBUG", "ERR", "RETURN"}, p.Name)
	}
	return false
}

// sameMap reports whether two declarations of an associative array differ in the order of
// the elements at most: bash turns the order round within each slot of its hash table.
func sameMap(one, other []byte) bool {
	if !(declaration{text: one}).has("A") || len(one) != len(other) {
		return false
	}
	a, b := bytes.Clone(one), bytes.Clone(other)
	slices.Sort(a)
	slices.Sort(b)
	return bytes.Equal(a, b)
}

// changes reports whether bash may have the piece in another form than the one that it
// was given.
func (p Piece) changes() bool {
	switch p.Kind {
	case kindVariable:
		return slices.Contains(bashOwn, p.Name) || strings.HasPrefix(p.Name, "BASH") || strings.HasPrefix(p.Name, "EPOCH")
	case kindFunction: // Bash writes it anew, mostly as it was.
		return true
	}
	return false
}

// declaration is a line of "declare -p", or several.
type declaration struct {
	name string
	text []byte
}

// has reports whether the variable has the attribute.
func (d declaration) has(attribute string) bool {
	attributes, _, ok := bytes.Cut(bytes.TrimPrefix(d.text, []byte("declare -")), []byte(" "))
	return ok && bytes.HasPrefix(d.text, []byte("declare -")) && bytes.Contains(attributes, []byte(attribute))
}

// declarations takes the output of "declare -p" apart. Other
// text is returned as declarations without a name.
func declarations(script []byte) []declaration {
	var all []declaration
	for _, text := range statements(script) {
		d := declaration{text: text}
		if words, ok := bytes.CutPrefix(text, []byte("declare -")); ok {
			_, rest, _ := bytes.Cut(words, []byte(" "))
			name, _, _ := bytes.Cut(bytes.TrimRight(rest, "\n"), []byte("="))
			d.name = string(name)
		}
		all = append(all, d)
	}
	return all
}

// statements splits what bash has written of itself at the newlines that are in no
// quotes: "..." and $'...' with backslashes, '...' without.
func statements(script []byte) (all [][]byte) {
	quote, escapes := byte(0), true // the quote that is open; whether a backslash counts
	start := 0
	for i := 0; i < len(script); i++ {
		switch c := script[i]; {
		case c == '\\' && escapes:
			i++
		case c == quote:
			quote, escapes = 0, true
		case quote != 0:
		case c == '"', c == '\'':
			quote, escapes = c, c == '"' || i > 0 && script[i-1] == '$'
		case c == '\n':
			all = append(all, script[start:i+1])
			start = i + 1
		}
	}
	if start < len(script) {
		all = append(all, script[start:])
	}
	return all
}
