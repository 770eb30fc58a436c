package ipc

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What can be told of a saved state by the text of its functions.

// functions returns the functions by name.
func (s State) functions() map[string]string {
	bodies := make(map[string]string)
	name := ""
	for line := range strings.Lines(string(s.part[partFunctions])) {
		if head, ok := strings.CutSuffix(line, " () \n"); ok && !strings.HasPrefix(line, " ") {
			name = head
		}
		bodies[name] += line
	}
	return bodies
}

// Trapping returns the names of the functions that may set a trap, by
// themselves or by another one that they mention.
func (s State) Trapping() []string {
	bodies := s.functions()
	var found []string
	for grown := true; grown; {
		grown = false
		for name, body := range bodies {
			if HasWord(body[len(name):], append(found, "trap")...) {
				found, grown = append(found, name), true
				delete(bodies, name)
			}
		}
	}
	return found
}

// HasWord reports whether one of the words stands in the text by itself.
func HasWord(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool {
		return regexp.MustCompile(`(^|[^\w-])` + regexp.QuoteMeta(word) + `($|[^\w-])`).MatchString(text)
	})
}

// Leave returns the state as it would be outside of the functions that bash
// was in when it ended. What is local to them has the value that it has in
// before, an earlier state.
func (s State) Leave(before State) State {
	bodies := s.functions()
	locals := make(map[string]bool)
	for name := range strings.FieldsSeq(string(s.part[partFunction])) {
		for _, local := range localNames(bodies[name]) {
			locals[local] = true
		}
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
	return s
}

// localNames finds what a function declares for itself: by local, declare or
// typeset, but for "declare -g".
func localNames(function string) (names []string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(function), "")
	if err != nil {
		return nil // Bash wrote it. Nothing is known, so nothing is local.
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

// declaration is a line of "declare -p", or several.
type declaration struct {
	name string
	text []byte
}

// declarations takes the output of "declare -p" apart. What cannot be parsed is
// one declaration without a name.
func declarations(script []byte) []declaration {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(bytes.NewReader(script), "")
	if err != nil {
		return []declaration{{text: script}}
	}
	var all []declaration
	for _, stmt := range file.Stmts {
		d := declaration{text: append(slices.Clone(script[stmt.Pos().Offset():stmt.End().Offset()]), '\n')}
		if clause, ok := stmt.Cmd.(*syntax.DeclClause); ok {
			for _, arg := range clause.Args {
				if arg.Name != nil {
					d.name = arg.Name.Value
				}
			}
		}
		all = append(all, d)
	}
	return all
}
