package saved

import (
	"bytes"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What can be told of a saved state by the text of its functions.

// Functions returns the functions by name, each as bash writes it.
func (s State) Functions() map[string]string {
	text := make(map[string]*strings.Builder)
	name := ""
	for line := range strings.Lines(string(s.part[partFunctions])) {
		if head, ok := strings.CutSuffix(line, " () \n"); ok && !strings.HasPrefix(line, " ") {
			name = head
		}
		if text[name] == nil {
			text[name] = new(strings.Builder)
		}
		text[name].WriteString(line)
	}
	bodies := make(map[string]string, len(text))
	for name, b := range text {
		bodies[name] = b.String()
	}
	return bodies
}

// Aliases returns what the shell expands, by name: nothing if it expands no aliases.
func (s State) Aliases() map[string]string {
	if !s.Shopt(expandAliases) {
		return nil
	}
	aliases := make(map[string]string)
	for _, p := range aliasPieces(s.part[partAliases]) {
		if p.Kind != kindAlias {
			continue
		}
		_, value, _ := strings.Cut(strings.TrimSpace(string(p.text)), "=")
		value = strings.TrimSuffix(strings.TrimPrefix(value, "'"), "'")
		aliases[p.Name] = strings.ReplaceAll(value, `'\''`, "'")
	}
	return aliases
}

// Leave returns the state as it would be outside of the functions that bash
// was in when it ended. What is local to them has the value that it has in
// before, an earlier state.
func (s State) Leave(before State) State {
	bodies := s.Functions()
	locals := make(map[string]bool)
	for name := range strings.FieldsSeq(string(s.part[partFunction])) {
		for _, local := range localNames(bodies[name]) {
			locals[local] = true
		}
		delete(bodies, name) // It may have called itself.
	}
	var kept bytes.Buffer
	keep := func(variables []byte, want bool) {
		for _, v := range declarations(variables) {
			if locals[v.name] == want {
				kept.Write(v.text)
			}
		}
	}
	keep(s.part[partVariables], false)
	keep(before.part[partVariables], true)
	s.part[partVariables], s.InFunction = kept.Bytes(), false
	parameters, _ := before.words() // A function has its own.
	_, stack := s.words()
	s.part[partWords] = bytes.Join(slices.Concat(parameters, [][]byte{[]byte("-"), []byte("''")}, stack), []byte(" "))
	return s
}

// parseMax bounds what is parsed, in bytes. A command may have forged the state, and
// the parser's stack grows with the depth of what it reads: a program that is out
// of stack ends.
const parseMax = 64 << 10

// localNames finds what a function declares for itself: by local, declare or
// typeset, but for "declare -g". Of a function that cannot be parsed nothing is
// known, so nothing is local.
func localNames(function string) (names []string) {
	if len(function) > parseMax {
		return nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(function), "")
	if err != nil {
		return nil
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		clause, ok := node.(*syntax.DeclClause)
		if !ok || !slices.Contains([]string{"local", "declare", "typeset"}, clause.Variant.Value) {
			return true
		}
		var own []string
		for _, arg := range clause.Args {
			switch {
			case arg.Name != nil:
				own = append(own, arg.Name.Value)
			case arg.Value != nil && strings.HasPrefix(arg.Value.Lit(), "-") && strings.Contains(arg.Value.Lit(), "g"):
				return true
			}
		}
		names = append(names, own...)
		return true
	})
	return names
}
