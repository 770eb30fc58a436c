package saved

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/limpet-sh/limpet/internal/script"
)

// Piece is one thing of a saved state: a variable, a function, an alias, a trap, an
// option. Each is brought back by itself, so that one which bash cannot read back takes
// no other along.
type Piece struct {
	Kind string // "variable", say; empty for a step that is no part of the state
	Name string

	text     []byte // what bash wrote of it: what is compared
	steps    []step // the commands that bring it back; the next one runs if the last one has not failed
	function bool   // text is read as it is, and the steps are none
	removes  bool   // it takes something away
}

// step is a command that begins with the name of a builtin, or an assignment.
type step struct {
	text       []byte
	assignment bool
}

// call returns a step that calls a builtin.
func call(format string, args ...any) step { return step{text: fmt.Appendf(nil, format, args...)} }

// The kinds of pieces that are treated in ways of their own.
const (
	kindVariable = "variable"
	kindFunction = "function"
	kindMark     = "attributes of the function"
	kindTrap     = "trap for"
	kindAlias    = "alias"
	kindOption   = "option"
	kindWhole    = "the" // there is one: the umask, say
)

// newPiece returns a piece that one command brings back: its text.
func newPiece(kind, name string, text []byte) Piece {
	return Piece{Kind: kind, Name: name, text: text, steps: []step{{text: bytes.TrimSuffix(text, []byte("\n"))}}}
}

// do returns a piece that is no part of a state, but a command that has to run between others.
func do(format string, args ...any) Piece {
	return newPiece("", "", fmt.Appendf(nil, format, args...))
}

func (p Piece) String() string { return p.Kind + " " + p.Name }

// PieceDir is the kind of the directory.
const PieceDir = "working directory"

// Kinds are what the pieces of a state are, as [Piece.Plural] has them.
var Kinds = []string{
	PieceDir, "variables", "functions", "aliases", "options", "traps", "umask", "positional parameters", "stack of directories",
	"completions", "disabled builtins", "limits",
}

// Plural names the kind of the piece; empty for a step that is no part of the state.
func (p Piece) Plural() string {
	switch p.Kind {
	case kindVariable:
		return "variables"
	case kindFunction, kindMark:
		return "functions"
	case kindAlias:
		return "aliases"
	case kindOption:
		return "options"
	case kindTrap:
		return "traps"
	case kindCompletion:
		return "completions"
	case kindDisabled:
		return "disabled builtins"
	case kindLimit:
		return "limits"
	case kindStack:
		return "stack of directories"
	case kindWhole:
		return p.Name
	}
	return ""
}

// script returns the commands that bring the piece back.
func (p Piece) script(n script.Names) []byte {
	if p.function {
		return p.text
	}
	var b bytes.Buffer
	for i, s := range p.steps {
		if i > 0 {
			b.WriteString(" && ")
		}
		if !s.assignment {
			b.WriteString(string(n))
		}
		b.Write(s.text)
	}
	return b.Bytes()
}

// Line returns a command that brings the piece back, or fails, and confines what may be wrong
// with it.
func (p Piece) Line(n script.Names) []byte {
	text := bytes.TrimSuffix(p.script(n), []byte("\n"))
	if len(text) <= evalMax || p.Kind != kindVariable {
		text = slices.Concat([]byte(n), []byte("eval -- "), quoteBytes(text))
	}
	return text
}

// SizeOf returns how many bytes bash reads for the pieces.
func SizeOf(pieces []Piece) (size int) {
	for _, p := range pieces {
		size += len(p.text)
	}
	return size
}

func optionPieces(settings [][]byte) (all []Piece) {
	for _, text := range settings {
		p := newPiece(kindOption, lastWord(text), text)
		if bytes.HasPrefix(text, []byte("umask ")) {
			p.Kind, p.Name = kindWhole, "umask"
		}
		all = append(all, p)
	}
	return all
}

// functionPieces takes the output of "declare -f" apart, which is in the order of
// "declare -F". A body may have a line that looks like the head of another function.
func functionPieces(script, marks []byte) (all []Piece) {
	heads := statements(marks)
	for line := range bytes.Lines(script) {
		if len(heads) > 0 && string(line) == lastWord(heads[0])+" () \n" {
			all = append(all, Piece{Kind: kindFunction, Name: lastWord(heads[0]), function: true})
			heads = heads[1:]
		}
		if len(all) > 0 { // Else a command has forged it.
			last := &all[len(all)-1]
			last.text = append(last.text, line...)
		}
	}
	return all
}

// mark is a line of "declare -F": a function, and the letters of its attributes.
type mark struct{ name, letters string }

func marks(script []byte) (all []mark) {
	for _, text := range statements(script) {
		letters, _, _ := strings.Cut(strings.TrimPrefix(string(text), "declare -f"), " ")
		all = append(all, mark{lastWord(text), letters})
	}
	return all
}

// aliasPieces takes the output of "alias -p" and "trap -p" apart. In posix mode
// bash leaves out the word alias.
func aliasPieces(script []byte) (all []Piece) {
	for _, text := range statements(script) {
		p := newPiece(kindTrap, lastWord(text), text)
		if !bytes.HasPrefix(text, []byte("trap -- ")) {
			definition := bytes.TrimPrefix(bytes.TrimPrefix(text, []byte("alias ")), []byte("-- "))
			name, _, _ := bytes.Cut(definition, []byte("="))
			p = newPiece(kindAlias, string(name), slices.Concat([]byte("alias -- "), definition))
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

// NamesAfter returns how to reach a builtin when bash has taken the pieces.
func NamesAfter(n script.Names, pieces []Piece) script.Names {
	for _, p := range pieces {
		switch {
		case !p.function:
		case n == script.ViaBuiltin && p.Name == "builtin":
			n = script.ViaCommand
		case n == script.ViaCommand && p.Name == "command":
			n = script.Plain
		}
	}
	return n
}

// Script renders what brings the pieces back: a script for bash to source, and what to run
// before it, which may be empty. Each piece is a line of its own: what is no valid command, or gives
// up its line, takes no other piece along. The index of each piece that bash refuses is a line
// in the file refused. Behind the script a builtin is reached as [NamesAfter] says.
func Script(n script.Names, pieces []Piece, refused string) (before, text string) {
	var b strings.Builder
	for i, p := range pieces {
		if p.Kind == kindTrap && p.Name == "DEBUG" && bytes.HasPrefix(p.text, []byte(noTrap)) {
			before = fmt.Sprintf("%s%s; ", n, p.text) // Bash puts it back behind a script that is sourced.
			continue
		}
		b.Write(p.Line(n))
		fmt.Fprintf(&b, " || %sprintf '%%s\\n' %d >>%s\n", n, i, script.Quote(refused))
		n = NamesAfter(n, pieces[i:i+1])
	}
	fmt.Fprintf(&b, "%s:\n", n)
	return before, b.String()
}

// noTrap begins a command that removes a trap.
const noTrap = "trap - "

// evalMax is the longest declaration, in bytes, that bash parses twice: it has written it
// so that it can be read.
const evalMax = 64 << 10

// quoteBytes quotes text of any bytes as one word.
func quoteBytes(text []byte) []byte {
	return slices.Concat([]byte{'\''}, bytes.ReplaceAll(text, []byte{'\''}, []byte(`'\''`)), []byte{'\''})
}
