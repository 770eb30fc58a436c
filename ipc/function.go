package ipc

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What can be told of a saved state by the text of its functions.

// functions returns the functions by name.
func (s State) functions() map[string]string {
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

// Trapping returns the names of the functions that may set a trap, by
// themselves or by another one that they mention.
func (s State) Trapping() []string {
	mentioning := make(map[string][]string) // by a word, the functions that it stands in
	for name, body := range s.functions() {
		mentioning[""] = append(mentioning[""], name)
		for _, word := range words.FindAllString(body[len(name):], -1) {
			mentioning[word] = append(mentioning[word], name)
		}
	}
	trapping := make(map[string]bool)
	for next := []string{"trap"}; len(next) > 0; next = next[1:] {
		// Of a name that is no word, as "a:b", its first word is enough. It may have none.
		for _, name := range mentioning[words.FindString(next[0])] {
			if !trapping[name] {
				trapping[name] = true
				next = append(next, name)
			}
		}
	}
	return slices.Sorted(maps.Keys(trapping))
}

// MayOpen reports whether a script that runs in a shell of this state may leave a
// descriptor open there, by exec or coproc, say: in its text, in a function, or where no
// text shows it.
func (s State) MayOpen(script string) bool {
	return opens.MatchString(script) || sources.MatchString(script) || opens.Match(s.part[partFunctions])
}

// Mentions reports whether a function of the state has the word in it.
func (s State) Mentions(word string) bool { return HasWord(string(s.part[partFunctions]), word) }

var (
	opens   = regexp.MustCompile(`\b(exec|coproc|eval|source)\b|\{\w+\}[<>]`)
	sources = regexp.MustCompile(`(^|[\s;&|({])\.\s`)
)

var words = regexp.MustCompile(`[\w-]+`)

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
