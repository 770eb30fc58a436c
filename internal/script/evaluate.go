package script

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// What an expander finds in arithmetic, and in the expressions of [[, which bash evaluates
// after it has expanded them.

// subscript is for a subscript, which may be the key of an associative array.
func (e *expander) subscript(x syntax.ArithmExpr) { e.expansions(x) }

// expansions is for what bash expands in an expression before it evaluates it.
func (e *expander) expansions(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		e.parts(x.Parts)
	case *syntax.ParenArithm:
		e.expansions(x.X)
	case *syntax.UnaryArithm:
		e.expansions(x.X)
	case *syntax.BinaryArithm:
		e.expansions(x.X)
		e.expansions(x.Y)
	}
}

func (e *expander) arithmetic(x syntax.ArithmExpr) {
	if x == nil {
		return
	}
	if word, ok := x.(*syntax.Word); !ok || word != nil {
		e.expansions(x)
		e.evaluate(x)
	}
}

// evaluate is for the bare names in an expression, which are read unless they are assigned
// to, or an operator leaves out its operand. It returns the value, if that is known.
func (e *expander) evaluate(x syntax.ArithmExpr) (value int, known bool) {
	switch x := x.(type) {
	case *syntax.Word:
		return e.operand(x)
	case *syntax.ParenArithm:
		return e.evaluate(x.X)
	case *syntax.UnaryArithm:
		value, known = e.evaluate(x.X)
		if x.Op == syntax.Not && value == 0 {
			return 1, known
		}
		return 0, known && x.Op == syntax.Not
	case *syntax.BinaryArithm:
		return e.binary(x)
	}
	return 0, false
}

func (e *expander) binary(x *syntax.BinaryArithm) (value int, known bool) {
	switch x.Op {
	case syntax.Assgn:
		return e.evaluate(x.Y)
	case syntax.AndArit, syntax.OrArit:
		left, known := e.evaluate(x.X)
		if known && (left != 0) == (x.Op == syntax.OrArit) {
			return left, true
		}
		e.evaluate(x.Y)
	case syntax.TernQuest:
		branches, ok := x.Y.(*syntax.BinaryArithm)
		condition, known := e.evaluate(x.X)
		if !ok {
			return 0, false
		}
		if !known || condition != 0 {
			e.evaluate(branches.X)
		}
		if !known || condition == 0 {
			e.evaluate(branches.Y)
		}
	default:
		e.evaluate(x.X)
		e.evaluate(x.Y)
	}
	return 0, false
}

// valuesMax bounds how many values are read as expressions: one may name itself.
const valuesMax = 100

// operand is for a word that is evaluated: a number, a name, or an expression in quotes.
func (e *expander) operand(word *syntax.Word) (value int, known bool) {
	text, ok := constant(word)
	if !ok && len(word.Parts) == 1 {
		if p, isParam := word.Parts[0].(*syntax.ParamExp); isParam && !p.Dollar.IsValid() {
			text, ok = p.Param.Value, true // An element of an array: name[subscript].
		}
	}
	if !ok {
		return 0, false // Expanded already.
	}
	if n, err := strconv.Atoi(text); err == nil {
		return n, true
	}
	name := text
	if syntax.ValidName(name) {
		if text, ok = e.lookup(name); !ok {
			e.fatal = e.fatal || e.nounset
			return 0, true
		}
	}
	if n, err := strconv.Atoi(text); err == nil || text == "" {
		return n, true
	}
	if e.values++; e.values > valuesMax || text == name && len(word.Parts) == 1 && syntax.ValidName(name) {
		return 0, false
	}
	if x := parseArithmetic(text); x != nil {
		return e.evaluate(x)
	}
	return 0, false
}

// parseArithmetic reads an expression, and returns nil if the text is not an expression.
func parseArithmetic(text string) syntax.ArithmExpr {
	if len(text) > parseMax || nesting(text) > nestingMax {
		return nil
	}
	parser := parsers.Get().(*syntax.Parser)
	x, err := parser.Arithmetic(strings.NewReader(text))
	parsers.Put(parser)
	if err != nil {
		return nil
	}
	return x
}

// test is for the expression of a [[. It returns its truth, if that is known: an operand that
// && or || leaves out is not expanded.
func (e *expander) test(x syntax.TestExpr) (truth, known bool) {
	switch x := x.(type) {
	case *syntax.Word:
		e.word(x)
		text, known := e.text(x)
		return text != "", known
	case *syntax.ParenTest:
		return e.test(x.X)
	case *syntax.UnaryTest:
		// The parser reads "! a && b" as ! (a && b), bash as (! a) && b.
		if list, ok := x.X.(*syntax.BinaryTest); ok && (list.Op == syntax.AndTest || list.Op == syntax.OrTest) {
			return e.binaryTest(&syntax.BinaryTest{Op: list.Op, X: &syntax.UnaryTest{Op: x.Op, X: list.X}, Y: list.Y})
		}
		word, ok := x.X.(*syntax.Word)
		if !ok {
			truth, known = e.test(x.X)
			return !truth, known && x.Op == syntax.TsNot
		}
		e.word(word)
		text, known := e.text(word)
		switch x.Op {
		case syntax.TsNot, syntax.TsEmpStr:
			return text == "", known
		case syntax.TsNempStr:
			return text != "", known
		case syntax.TsVarSet:
			_, set := e.lookup(text)
			return set, known && syntax.ValidName(text)
		}
	case *syntax.BinaryTest:
		return e.binaryTest(x)
	}
	return false, false
}

func (e *expander) binaryTest(x *syntax.BinaryTest) (truth, known bool) {
	left, _ := x.X.(*syntax.Word)
	right, _ := x.Y.(*syntax.Word)
	switch x.Op {
	case syntax.AndTest, syntax.OrTest:
		truth, known := e.test(x.X)
		if known && truth == (x.Op == syntax.OrTest) {
			return truth, true
		}
		return e.test(x.Y)
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		if left != nil && right != nil {
			e.arithmetic(left)
			e.arithmetic(right)
		}
		return false, false
	}
	e.test(x.X)
	e.test(x.Y)
	if left == nil || right == nil || x.Op != syntax.TsMatch && x.Op != syntax.TsMatchShort && x.Op != syntax.TsNoMatch {
		return false, false
	}
	a, knownLeft := e.text(left)
	b, knownRight := constant(right)
	return (a == b) == (x.Op != syntax.TsNoMatch), knownLeft && knownRight
}

// text returns what a word expands to, if it is constant, or one parameter with a default
// that is constant.
func (e *expander) text(word *syntax.Word) (text string, known bool) {
	if text, ok := constant(word); ok {
		return text, true
	}
	parts := word.Parts
	if quoted, ok := parts[0].(*syntax.DblQuoted); ok && len(parts) == 1 {
		parts = quoted.Parts
	}
	if len(parts) != 1 {
		return "", false
	}
	p, ok := parts[0].(*syntax.ParamExp)
	if !ok || !syntax.ValidName(p.Param.Value) && number(p.Param.Value) < 1 || p.Excl || p.Length || p.Index != nil || p.Slice != nil || p.Repl != nil {
		return "", false
	}
	value, set := e.lookup(p.Param.Value)
	if p.Exp == nil {
		return value, true
	}
	if p.Exp.Op != syntax.DefaultUnset && p.Exp.Op != syntax.DefaultUnsetOrNull {
		return "", false
	}
	if set && (value != "" || p.Exp.Op == syntax.DefaultUnset) {
		return value, true
	}
	if p.Exp.Word == nil {
		return "", true
	}
	return constant(p.Exp.Word)
}
