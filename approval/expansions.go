package approval

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// expansions adds findings about what is expanded in a word, and walks the commands in it. It knows what it
// allows; any other kind of node asks. quoted says that the parts are in double quotes, or in a here-document.
func (w *walker) expansions(parts []syntax.WordPart, quoted bool) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
		case *syntax.SglQuoted:
			// In "${x:-'$(ls)'}" these are no quotes, and for some shells they do not hide the end: "${x:-'}" ; ls ; "'}".
			if quoted && strings.ContainsAny(part.Value, "$`\\\"}") {
				w.ask(KindExpansion, part, ruleExpansion, "the text in single quotes is expanded there")
			}
		case *syntax.DblQuoted:
			if part.Dollar && w.translates() {
				w.ask(KindExpansion, part, ruleExpansion, "a translation of the text is expanded in its place")
			}
			w.expansions(part.Parts, true)
		case *syntax.ParamExp:
			w.parameter(part, quoted)
		case *syntax.CmdSubst:
			w.handing(w.hands && !counts(part), func() { w.substitution(part.Stmts) })
		case *syntax.ProcSubst:
			fed := w.fed
			w.fed = false
			w.substitution(part.Stmts)
			w.fed = fed
		case *syntax.ArithmExp:
			w.arithmetic(part.X, part)
		case *syntax.ExtGlob:
			if strings.ContainsAny(part.Pattern.Value, "$`\\'\"()<>") {
				w.ask(KindExpansion, part, ruleExpansion, "what an extended pattern expands cannot be told here")
			}
		default:
			w.ask(KindExpansion, part, ruleExpansion, "this kind of expansion is not known")
		}
	}
}

// parameter judges ${..}. It allows the operators that only read a value; others evaluate it, which can run commands.
func (w *walker) parameter(p *syntax.ParamExp, quoted bool) {
	ask := func(reason string) { w.ask(KindExpansion, p, ruleExpansion, reason) }
	if p.NestedParam != nil || p.Flags != nil || len(p.Modifiers) > 0 || p.Width || p.IsSet || p.Param == nil {
		ask("this expansion is none of bash's")
		return
	}
	// With an operator, ${!name[@]} is no list of subscripts, and ${!name@} none of names.
	operator := p.Exp != nil || p.Slice != nil || p.Repl != nil
	if p.Excl && (operator || p.Names == 0 && !allElements(p.Index)) {
		ask("${!name} expands the variable that a value names, which can run commands")
	}
	name := p.Param.Value
	if (w.hands || w.handed) && w.has(name) && !isPlain(p) && !p.Length { // The operator may cut the value: the rest is not known.
		v := w.vars[name]
		if v.from, v.to = w.node(p); w.fits(v) {
			w.keep(name, []value{v})
		}
	}
	// What follows is expanded or not as the variable is.
	w.apart(func() { w.operators(p, quoted) })
}

// operators judges what is in ${..} behind the name.
func (w *walker) operators(p *syntax.ParamExp, quoted bool) {
	ask := func(reason string) { w.ask(KindExpansion, p, ruleExpansion, reason) }
	if (w.hands || w.handed) && homes[p.Param.Value] != "" && w.cuts(p) {
		w.ask(KindExpansion, p, ruleRead, "which directory is left of "+p.Param.Value+" cannot be told")
	}
	if p.Index != nil && !allElements(p.Index) {
		w.arithmetic(p.Index, p)
	}
	if p.Slice != nil {
		w.arithmetic(p.Slice.Offset, p)
		w.arithmetic(p.Slice.Length, p)
		if length, ok := p.Slice.Length.(*syntax.Word); p.Slice.Length != nil && (!ok || !w.onlyNumber(length.Parts)) {
			w.broken = true // A length below zero may end before the beginning.
		}
	}
	if p.Repl != nil {
		w.word(p.Repl.Orig)
		w.word(p.Repl.With)
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull,
		syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		w.substitute(p.Exp.Word, quoted)
	case syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.UpperFirst, syntax.UpperAll,
		syntax.LowerFirst, syntax.LowerAll:
		w.word(p.Exp.Word) // Single quotes in a pattern are quotes, also in double quotes.
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		w.handing(true, func() { w.substitute(p.Exp.Word, quoted) }) // The variable keeps it.
		if p.Excl || p.Index != nil || !harmless(p.Param.Value) {
			ask("it assigns to a variable that may change how commands run")
		}
	case syntax.OtherParamOps:
		if op := p.Exp.Word.Lit(); op != "Q" && op != "U" && op != "u" && op != "L" {
			ask("${name@" + op + "} may evaluate the value")
		}
	default:
		ask("this operator is not known")
	}
}

// substitute is for a word that stands for a parameter, and is quoted as that is.
func (w *walker) substitute(word *syntax.Word, quoted bool) {
	if word == nil {
		return
	}
	if w.expansions(word.Parts, quoted); w.hands || w.handed {
		w.kept([]value{w.value(word)})
	}
}

// allElements reports whether a subscript is @ or *.
func allElements(x syntax.ArithmExpr) bool {
	word, ok := x.(*syntax.Word)
	return ok && (word.Lit() == "@" || word.Lit() == "*")
}

// numbers are variables whose value bash makes, and which are always a number.
var numbers = map[string]bool{
	"RANDOM": true, "SRANDOM": true, "SECONDS": true, "LINENO": true, "EPOCHSECONDS": true, "UID": true, "EUID": true, "PPID": true, "BASHPID": true,
}

// isNumber reports whether a variable is one that bash makes, and a number. Other shells have no such, but for PPID.
func (w *walker) isNumber(name string) bool {
	if w.posix {
		return name == "PPID"
	}
	return numbers[name] && w.assigned[name] == 0
}

// arithmetic is for an expression. Bash evaluates the value of a variable in it as an expression too, and with it the
// subscripts, in which commands run: only numbers are allowed.
func (w *walker) arithmetic(x syntax.ArithmExpr, whole syntax.Node) {
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		w.operand(x, whole)
	case *syntax.ParenArithm:
		w.arithmetic(x.X, whole)
	case *syntax.UnaryArithm:
		if name, ok := x.X.(*syntax.Word); (x.Op == syntax.Inc || x.Op == syntax.Dec) && (!ok || !w.has(name.Lit())) {
			w.broken = true // It may be a number, or readonly.
		}
		w.arithmetic(x.X, whole)
	case *syntax.BinaryArithm:
		w.binary(x, whole)
	default:
		w.ask(KindExpansion, whole, ruleArithmetic, "this kind of arithmetic is not known")
	}
}

func (w *walker) binary(x *syntax.BinaryArithm, whole syntax.Node) {
	switch x.Op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn,
		syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
	default:
		w.arithmetic(x.X, whole)
		w.apart(func() { w.arithmetic(x.Y, whole) }) // Of && and its like, it may not be evaluated.
		w.broken = w.broken || x.Op == syntax.Quo || x.Op == syntax.Rem || x.Op == syntax.Pow
		return
	}
	w.broken = w.broken || x.Op == syntax.QuoAssgn || x.Op == syntax.RemAssgn // By zero.
	w.arithmetic(x.Y, whole)
	name, ok := x.X.(*syntax.Word)
	if !ok || !harmless(name.Lit()) {
		w.ask(KindExpansion, whole, ruleArithmetic, "it assigns to a variable that may change how commands run")
		return
	}
	if x.Op != syntax.Assgn {
		w.arithmetic(x.X, whole)
		return
	}
	w.set(name.Lit(), value{numeric: true, pattern: hidden})
}

// operand is for a word in arithmetic.
func (w *walker) operand(word *syntax.Word, whole syntax.Node) {
	v := w.word(word)
	if v.numeric || v.number() || w.onlyNumber(word.Parts) || hexNumber(v) {
		return
	}
	if name := word.Lit(); name != "" && (w.isNumber(name) || w.has(name) && (w.vars[name].numeric || w.vars[name].number())) {
		return
	}
	w.ask(KindExpansion, whole, ruleArithmetic, "arithmetic evaluates the value of a variable, which can run commands: it is not known to be a number")
}

func hexNumber(v value) bool {
	if !v.known {
		return false
	}
	rest, ok := strings.CutPrefix(v.text, "0x")
	return ok && rest != "" && strings.Trim(rest, "0123456789abcdefABCDEF") == ""
}

// onlyNumber reports whether a word is $#, $?, $$, ${#name}, $RANDOM or arithmetic, also in quotes.
func (w *walker) onlyNumber(parts []syntax.WordPart) bool {
	if len(parts) != 1 {
		return false
	}
	switch part := parts[0].(type) {
	case *syntax.DblQuoted:
		return !part.Dollar && w.onlyNumber(part.Parts)
	case *syntax.ArithmExp:
		return true // It yields a number, and the walk judges its expression by itself.
	case *syntax.CmdSubst:
		return counts(part)
	case *syntax.ParamExp:
		if part.Exp != nil || part.Repl != nil || part.Slice != nil || part.Index != nil && !part.Length || part.Excl || part.Param == nil {
			return false
		}
		switch part.Param.Value {
		case "#", "?", "$":
			return true
		}
		return part.Length || w.isNumber(part.Param.Value)
	}
	return false
}

// counts reports whether a substitution is of a program that prints a number: the programs are what their names say, as for all rules.
func counts(sub *syntax.CmdSubst) bool {
	if len(sub.Stmts) != 1 {
		return false
	}
	stmt := sub.Stmts[0]
	if pipe, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && pipe.Op == syntax.Pipe {
		stmt = pipe.Y
	}
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(stmt.Redirs) > 0 || stmt.Negated || stmt.Background {
		return false
	}
	var words []string
	for _, word := range call.Args {
		words = append(words, word.Lit())
	}
	switch strings.Join(words, " ") {
	case "date +%s", "nproc", "id -u", "wc -l", "wc -c", "wc -w":
		return true
	}
	return false
}
