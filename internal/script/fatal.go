package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Fatal reports whether an expansion in a command ends "bash -c", and not only its line: ${x?}
// and ${x:?}, $x under nounset, and ${x@Z}, whose operator bash does not know. It does not
// look into ( ), $( ), pipelines and functions.
//
// The command is one as $BASH_COMMAND has it, "for x in words" and "case word in" included.
// Options has the names of those that are on, as $SHELLOPTS. Lookup returns the value of a
// variable, or of a positional parameter by its number, and whether it is set.
//
// Fatal asks Lookup for an element of an array, as "name[7]", if the subscript is a number. Else
// it takes the element for set if the array is, and a bare name in a subscript for a key. A command that is no builtin counts as a program, whose redirections are
// expanded in a process of its own.
func Fatal(command, options string, lookup func(name string) (value string, set bool)) bool {
	if len(command) > parseMax {
		return false
	}
	text, unknown := replaceOperators(command)
	file := parseCommand(text)
	if file == nil {
		return false
	}
	e := expander{lookup: lookup, unknown: unknown}
	for option := range strings.SplitSeq(options, ":") {
		e.nounset = e.nounset || option == "nounset"
	}
	e.statements(file.Stmts)
	return e.fatal
}

// parseCommand reads a command as $BASH_COMMAND has it: of a loop, or a case, it has the head.
func parseCommand(text string) *syntax.File {
	if file := parse(text); file != nil {
		return file
	}
	switch word, _, _ := strings.Cut(text, " "); word {
	case "for", "select":
		return parse(text + "\ndo :; done")
	case "case":
		return parse(text + "\nesac")
	}
	return nil
}

// replaceOperators replaces the operators of ${name@operator} that bash does not know, which
// the parser would reject. It returns the offsets of these expansions in the new text.
func replaceOperators(text string) (replaced string, unknown map[uint]bool) {
	var b strings.Builder
	start := -1 // of the last expansion before the @
	for {
		at := strings.IndexByte(text, '@')
		if at < 0 {
			b.WriteString(text)
			return b.String(), unknown
		}
		if i := strings.LastIndex(text[:at], "${"); i >= 0 {
			start = b.Len() + i
		}
		b.WriteString(text[:at+1])
		text = text[at+1:]
		end := strings.IndexByte(text, '}')
		if start < 0 || end < 0 {
			continue
		}
		name := b.String()[start+2 : b.Len()-1]
		// ${#@} is a number, and ${!name@} are names.
		if !parameterName(name) || end == 0 && (name == "#" || name[0] == '!') {
			continue
		}
		if end == 1 && strings.IndexByte("aAkKEPQUuL", text[0]) >= 0 {
			continue
		}
		if unknown == nil {
			unknown = make(map[uint]bool)
		}
		unknown[uint(start)] = true
		b.WriteByte('Q')
		text = text[end:]
	}
}

// parameterName reports whether the text is what an operator may follow in ${ }: a name, a
// number or a special parameter, and a subscript, maybe.
func parameterName(text string) bool {
	name, subscript, element := strings.Cut(strings.TrimPrefix(text, "!"), "[")
	if element && (subscript == "" || strings.IndexByte(subscript, ']') != len(subscript)-1) {
		return false
	}
	return syntax.ValidName(name) || number(name) >= 0 || len(name) == 1 && strings.Contains("@*#?-$!", name)
}

// expander finds the expansions of a command that are fatal.
type expander struct {
	lookup  func(name string) (value string, set bool)
	nounset bool
	unknown map[uint]bool // offsets of expansions with an operator that bash does not know
	values  int           // how many values of variables were read as arithmetic
	fatal   bool
}

func (e *expander) statements(stmts []*syntax.Stmt) {
	for _, stmt := range stmts {
		e.statement(stmt)
	}
}

func (e *expander) statement(stmt *syntax.Stmt) {
	if stmt == nil || stmt.Background {
		return
	}
	redirects := true
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		redirects = len(cmd.Args) == 0 || isBuiltin(cmd.Args[0])
		e.words(cmd.Args)
		for _, assign := range cmd.Assigns {
			e.assignment(assign)
		}
	case *syntax.DeclClause:
		for _, assign := range cmd.Args {
			e.assignment(assign)
		}
	case *syntax.Block:
		e.statements(cmd.Stmts)
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			return
		}
		e.statement(cmd.X)
		e.statement(cmd.Y)
	case *syntax.IfClause:
		for clause := cmd; clause != nil; clause = clause.Else {
			e.statements(clause.Cond)
			e.statements(clause.Then)
		}
	case *syntax.WhileClause:
		e.statements(cmd.Cond)
		e.statements(cmd.Do)
	case *syntax.ForClause:
		switch loop := cmd.Loop.(type) {
		case *syntax.WordIter:
			e.words(loop.Items)
		case *syntax.CStyleLoop:
			e.arithmetic(loop.Init)
			e.arithmetic(loop.Cond)
			e.arithmetic(loop.Post)
		}
		e.statements(cmd.Do)
	case *syntax.CaseClause:
		e.word(cmd.Word)
		for _, item := range cmd.Items {
			e.words(item.Patterns)
			e.statements(item.Stmts)
		}
	case *syntax.ArithmCmd:
		e.arithmetic(cmd.X)
	case *syntax.LetClause:
		for _, x := range cmd.Exprs {
			e.arithmetic(x)
		}
	case *syntax.TestClause:
		e.test(cmd.X)
	case *syntax.TimeClause:
		e.statement(cmd.Stmt)
	case *syntax.Subshell, *syntax.CoprocClause:
		redirects = false
	}
	if redirects {
		for _, redirect := range stmt.Redirs {
			e.word(redirect.Word)
			e.word(redirect.Hdoc)
		}
	}
}

// isBuiltin reports whether the name of a command is that of a builtin.
func isBuiltin(word *syntax.Word) bool {
	name, _ := constant(word)
	switch name {
	case ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "command", "compgen", "complete", "compopt",
		"continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exec", "exit", "export", "false", "fc", "fg", "getopts",
		"hash", "help", "history", "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read",
		"readarray", "readonly", "return", "set", "shift", "shopt", "source", "suspend", "test", "times", "trap", "true", "type",
		"typeset", "ulimit", "umask", "unalias", "unset", "wait":
		return true
	}
	return false
}

func (e *expander) assignment(assign *syntax.Assign) {
	e.subscript(assign.Index)
	e.word(assign.Value)
	if assign.Array != nil {
		for _, element := range assign.Array.Elems {
			e.subscript(element.Index)
			e.word(element.Value)
		}
	}
}

func (e *expander) words(words []*syntax.Word) {
	for _, word := range words {
		e.word(word)
	}
}

func (e *expander) word(word *syntax.Word) {
	if word != nil {
		e.parts(word.Parts)
	}
}

func (e *expander) parts(parts []syntax.WordPart) {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.DblQuoted:
			e.parts(part.Parts)
		case *syntax.ParamExp:
			e.parameter(part)
		case *syntax.ArithmExp:
			e.arithmetic(part.X)
		}
	}
}

// parameter is for one expansion of a parameter.
func (e *expander) parameter(p *syntax.ParamExp) {
	if p.Names != 0 {
		return
	}
	e.subscript(p.Index)
	name, whole := p.Param.Value, p.Index != nil && (indexText(p.Index) == "@" || indexText(p.Index) == "*")
	if p.Excl {
		target, set := e.lookup(name)
		if whole || !set || !syntax.ValidName(target) && number(target) < 0 {
			return // Indirect expansion of nothing gives up the line, and no more.
		}
		name = target
	}
	if index := indexText(p.Index); !whole && number(index) >= 0 {
		name += "[" + index + "]"
	}
	value, set := e.value(name)
	whole = whole || name == "@" || name == "*"
	if e.unknown[p.Dollar.Offset()] && set {
		e.fatal = true
	}
	if p.Exp != nil {
		null := !set || value == ""
		switch p.Exp.Op {
		case syntax.ErrorUnset:
			e.fatal = e.fatal || !set
			return
		case syntax.ErrorUnsetOrNull:
			// An array may have elements, and none with the subscript 0.
			e.fatal = e.fatal || !set || null && p.Index == nil
			return
		case syntax.DefaultUnset, syntax.AssignUnset:
			if !set {
				e.word(p.Exp.Word)
			}
			return
		case syntax.DefaultUnsetOrNull, syntax.AssignUnsetOrNull:
			if null {
				e.word(p.Exp.Word)
			}
			return
		case syntax.AlternateUnset:
			if set {
				e.word(p.Exp.Word)
			}
			return
		case syntax.AlternateUnsetOrNull:
			if !null {
				e.word(p.Exp.Word)
			}
			return
		}
	}
	if !set {
		e.fatal = e.fatal || e.nounset && !whole && !(p.Length && p.Index != nil)
		return
	}
	if p.Exp != nil {
		e.word(p.Exp.Word)
	}
	if p.Repl != nil {
		e.word(p.Repl.Orig)
		e.word(p.Repl.With)
	}
	if p.Slice != nil {
		e.arithmetic(p.Slice.Offset)
		e.arithmetic(p.Slice.Length)
	}
}

// value returns the value of a parameter, and whether it is set. Some special ones always are.
func (e *expander) value(name string) (value string, set bool) {
	switch name {
	case "#", "?", "-", "$", "0", "_":
		return name, true
	case "@", "*":
		return e.lookup("1")
	}
	return e.lookup(name)
}
