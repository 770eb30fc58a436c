package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) words(words []*syntax.Word) {
	for _, word := range words {
		w.word(word)
	}
}

func (w *walker) word(word *syntax.Word) {
	if word == nil {
		return
	}
	w.parts(word.Parts)
	w.path(word)
}

// path is for a word that may name a descriptor as a file.
func (w *walker) path(word *syntax.Word) {
	if w.sub {
		return
	}
	if lit, ok := word.Parts[0].(*syntax.Lit); ok && len(word.Parts) == 1 && !strings.HasPrefix(lit.Value, "/") {
		return // The most words need no copy.
	}
	text := lead(word)
	for _, dir := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if name, ok := strings.CutPrefix(text, dir); ok {
			w.descriptor(name)
		}
	}
}

func (w *walker) parts(parts []syntax.WordPart) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.DblQuoted:
			w.parts(part.Parts)
		case *syntax.ParamExp:
			w.parameter(part)
		case *syntax.CmdSubst:
			w.subshell(func() { w.statements(part.Stmts) })
		case *syntax.ProcSubst:
			if part.Op == syntax.CmdOut {
				w.traits.OutputSubstitution = true
			}
			w.subshell(func() { w.statements(part.Stmts) })
		case *syntax.ArithmExp:
			w.arithmetic(part.X)
		case *syntax.ExtGlob:
			w.pattern(part.Pattern.Value)
		}
	}
}

// pattern is for a text that the parser leaves as it is, as that in an extended pattern. It is
// read as a heredoc is: expansions in single quotes count too.
func (w *walker) pattern(text string) {
	if !strings.ContainsAny(text, "$`") {
		return
	}
	parser := parsers.Get().(*syntax.Parser)
	word, err := parser.Document(strings.NewReader(text))
	parsers.Put(parser)
	if err != nil {
		w.unknown()
		return
	}
	if word != nil {
		w.parts(word.Parts)
	}
}

// expanded is for single quotes in ${ }, which are no quotes if it is in double quotes or in a heredoc.
func (w *walker) expanded(part *syntax.SglQuoted) {
	if part.Dollar && strings.Contains(part.Value, `\`) {
		w.unknown()
		return
	}
	w.pattern(part.Value)
}

func (w *walker) parameter(p *syntax.ParamExp) {
	name := p.Param.Value
	switch name {
	case "!":
		w.mark(&w.traits.Jobs)
	case "$", "BASH_SUBSHELL":
		w.traits.PID = true
	}
	// With an operator, ${!x[@]} is no list of subscripts.
	operator := p.Exp != nil || p.Slice != nil || p.Repl != nil
	if p.Excl && (operator || p.Names == 0 && indexText(p.Index) != "@" && indexText(p.Index) != "*") {
		w.fails()
	}
	w.subscript(p.Index)
	if p.Slice != nil {
		w.arithmetic(p.Slice.Offset)
		w.arithmetic(p.Slice.Length)
		// A length below zero counts from the end, which may be before the offset.
		if !unsigned(p.Slice.Length) {
			w.fails()
		}
	}
	if p.Repl != nil {
		w.word(p.Repl.Orig)
		w.word(p.Repl.With)
	}
	if p.Exp == nil {
		return
	}
	w.word(p.Exp.Word)
	if p.Exp.Word != nil {
		for _, part := range p.Exp.Word.Parts {
			if quoted, ok := part.(*syntax.SglQuoted); ok {
				w.expanded(quoted)
			}
		}
	}
	switch p.Exp.Op {
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		w.mark(&w.traits.Demands)
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if p.Excl {
			w.assignAny()
		} else {
			w.assign(name)
		}
	case syntax.OtherParamOps:
		// ${name@P} expands the value as a prompt: expansions and commands in it run.
		if p.Exp.Word != nil && p.Exp.Word.Lit() == "P" {
			w.unknown()
		}
	}
}

// fails is for an expansion, or arithmetic, whose failure gives up the line.
func (w *walker) fails() { w.mark(&w.traits.Arithmetic) }

// indexText returns the text of a subscript that is one literal.
func indexText(x syntax.ArithmExpr) string {
	if word, ok := x.(*syntax.Word); ok {
		return word.Lit()
	}
	return ""
}

// subscript is for the subscript of an array, which may be negative, and then out of range.
func (w *walker) subscript(x syntax.ArithmExpr) {
	if x == nil || indexText(x) == "@" || indexText(x) == "*" {
		return
	}
	if !unsigned(x) {
		w.fails()
	}
	w.arithmetic(x)
}

// unsigned reports whether x is absent, or a constant number.
func unsigned(x syntax.ArithmExpr) bool {
	if x == nil {
		return true
	}
	text := indexText(x)
	return number(text) == 0 && text == "0" || number(text) > 0 && text[0] != '0'
}

// arithmetic walks an arithmetic expression. Bash evaluates the value of a name in it as
// an expression too, so that any name may assign.
func (w *walker) arithmetic(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		w.operand(x)
	case *syntax.ParenArithm:
		w.arithmetic(x.X)
	case *syntax.FlagsArithm:
		w.arithmetic(x.X)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.assignArithmetic(x.X)
		}
		w.arithmetic(x.X)
	case *syntax.BinaryArithm:
		switch x.Op {
		case syntax.Quo, syntax.Rem, syntax.Pow:
			w.fails()
		case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
			syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn,
			syntax.AndBoolAssgn, syntax.OrBoolAssgn, syntax.XorBoolAssgn, syntax.PowAssgn:
			w.assignArithmetic(x.X)
		}
		w.arithmetic(x.X)
		w.arithmetic(x.Y)
	}
}

// operand is for a word that is evaluated as an arithmetic expression.
func (w *walker) operand(word *syntax.Word) {
	if word == nil {
		return
	}
	w.parts(word.Parts)
	if unsigned(word) || count(word) {
		return
	}
	w.fails()
	w.changes()
}

// count reports whether a word is $#, $? or $$, which are always numbers.
func count(word *syntax.Word) bool {
	parts := word.Parts
	if quoted, ok := parts[0].(*syntax.DblQuoted); ok && len(parts) == 1 {
		parts = quoted.Parts
	}
	if len(parts) != 1 {
		return false
	}
	p, ok := parts[0].(*syntax.ParamExp)
	return ok && (p.Param.Value == "#" || p.Param.Value == "?" || p.Param.Value == "$") && p.Exp == nil && p.Slice == nil && p.Repl == nil
}

func (w *walker) assignArithmetic(x syntax.ArithmExpr) {
	if word, ok := x.(*syntax.Word); ok && len(word.Parts) == 1 {
		switch part := word.Parts[0].(type) {
		case *syntax.Lit:
			w.assign(part.Value)
			return
		case *syntax.ParamExp:
			if part.Dollar.IsValid() {
				break
			}
			w.assign(part.Param.Value)
			return
		}
	}
	w.assignAny()
}

// test walks the expression of a [[.
func (w *walker) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		w.word(x)
	case *syntax.ParenTest:
		w.test(x.X)
	case *syntax.UnaryTest:
		if word, ok := x.X.(*syntax.Word); ok && (x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar) {
			w.nameTested(word)
		}
		w.test(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if word, ok := side.(*syntax.Word); ok {
					w.operand(word)
				}
			}
			return
		case syntax.TsReMatch:
			w.assign("BASH_REMATCH")
		}
		w.test(x.X)
		w.test(x.Y)
	}
}

// nameTested is for a word that -v takes as the name of a variable: a subscript in it is
// evaluated.
func (w *walker) nameTested(word *syntax.Word) {
	if text, ok := constant(word); !ok || strings.Contains(text, "[") {
		w.fails()
		w.changes()
	}
}
