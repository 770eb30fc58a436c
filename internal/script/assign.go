package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// assign is for the name of a variable that is assigned to.
func (w *walker) assign(name string) {
	w.changes()
	w.checkName(name)
}

// assignAny is for an assignment to a name that only bash can tell.
func (w *walker) assignAny() {
	w.changes()
	if w.lib != nil && len(w.lib.readonly) > 0 {
		w.mark(&w.traits.Readonly)
	}
}

// checkName is for a name that is assigned to, maybe for one command alone.
func (w *walker) checkName(name string) {
	if w.lib != nil && w.lib.readonly[name] {
		w.mark(&w.traits.Readonly)
	}
	if name == "POSIXLY_CORRECT" {
		w.traits.Modal = true
		w.mark(&w.traits.Options)
	}
}

// assignWord is for a word that a builtin takes as the name of a variable, with a subscript
// or a value, maybe.
func (w *walker) assignWord(word *syntax.Word) {
	text := lead(word)
	_, known := constant(word)
	end := strings.IndexAny(text, "[+=")
	if end < 0 && !known {
		// The subscript is in the same literal, or there is an expansion in the name.
		if lit, ok := word.Parts[0].(*syntax.Lit); ok {
			text = lit.Value
			end = strings.IndexAny(text, "[+=")
		}
	}
	switch {
	case end < 0 && !known:
		w.fails() // It may have a subscript.
		w.assignAny()
	case end < 0:
		w.assign(text)
	default:
		if text[end] == '[' {
			w.fails()
		}
		w.assign(text[:end])
	}
}

// assignment walks the subscript and the value of an assignment.
func (w *walker) assignment(assign *syntax.Assign) {
	w.subscript(assign.Index)
	w.word(assign.Value)
	if assign.Array == nil {
		return
	}
	for _, element := range assign.Array.Elems {
		w.subscript(element.Index)
		w.word(element.Value)
	}
}

// declClause walks a declare and its kin.
func (w *walker) declClause(cmd *syntax.DeclClause, redirected bool) {
	variant := cmd.Variant.Value
	w.callFunction(variant)
	if variant == "nameref" {
		// Bash has no such builtin: these are the words of a program.
		for _, arg := range cmd.Args {
			w.assignment(arg)
		}
		return
	}
	w.declares(variant)
	for _, arg := range cmd.Args {
		w.assignment(arg)
		switch {
		case arg.Name == nil:
			w.declareWord(variant, arg.Value)
		case !arg.Naked || variant == "local":
			w.assign(arg.Name.Value)
		}
	}
}

// declare is for the words behind a declare, or its kin, that is named by "builtin",
// "command" or in quotes.
func (w *walker) declare(variant string, words []*syntax.Word) {
	w.declares(variant)
	for _, word := range words {
		w.declareWord(variant, word)
	}
}

func (w *walker) declares(variant string) {
	w.changes()
	if variant == "readonly" {
		w.mark(&w.traits.Readonly)
	}
}

// declareWord is for a word that is an option, a name, or an assignment.
func (w *walker) declareWord(variant string, word *syntax.Word) {
	text, known := constant(word)
	isOption := known && len(text) > 1 && (text[0] == '-' || text[0] == '+')
	if !isOption {
		w.assignWord(word)
	}
	if variant == "export" {
		return // Its options make nothing readonly.
	}
	if !known && mayBeOption(word) || isOption && text[0] == '-' && strings.Contains(text, "r") {
		w.mark(&w.traits.Readonly)
	}
	if isOption && text[0] == '-' && strings.Contains(text, "n") {
		w.assignAny() // Later assignments are to the variable that the name refers to.
	}
}
