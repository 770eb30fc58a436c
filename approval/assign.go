package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// unknowable is added to the count of a variable that a command may set; nonNumeric to that of one that is
// set to something that is not a plain number.
const (
	nonNumeric = 1 << 20
	unknowable = 1 << 21
)

// setters are builtins whose words may be names of variables that they set. Those of printf -v, eval, let and the like count
// for nothing: such a script asks.
var setters = map[string]bool{
	"read": true, "mapfile": true, "readarray": true, "getopts": true, "unset": true, "wait": true,
}

// countAssignments counts how often a text sets each of its variables, on whatever way.
func countAssignments(file *syntax.File) map[string]int {
	counts := make(map[string]int)
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Assign:
			if node.Name == nil {
				break
			}
			n := 1
			if node.Index != nil || node.Array != nil || node.Append {
				n = unknowable
			}
			if node.Value == nil || !isOperand(node.Value.Lit()) && !isArithmetic(node.Value) {
				counts[node.Name.Value] |= nonNumeric
			}
			counts[node.Name.Value] += n
		case *syntax.WordIter:
			counts[node.Name.Value]++
			counts[node.Name.Value] |= nonNumeric
		case *syntax.ParamExp:
			if node.Exp != nil && (node.Exp.Op == syntax.AssignUnset || node.Exp.Op == syntax.AssignUnsetOrNull) && node.Param != nil {
				counts[node.Param.Value] += unknowable
			}
		case *syntax.BinaryArithm:
			if word, ok := node.X.(*syntax.Word); ok && assigns(node.Op) {
				counts[word.Lit()]++
			}
		case *syntax.UnaryArithm:
			if word, ok := node.X.(*syntax.Word); ok {
				counts[word.Lit()]++
			}
		case *syntax.DeclClause:
			for _, arg := range node.Args {
				if arg.Name != nil {
					counts[arg.Name.Value] += unknowable
				}
			}
		case *syntax.CallExpr:
			countSetters(node, counts)
		}
		return true
	})
	return counts
}

// assigns reports whether an operator sets what is on its left.
func assigns(op syntax.BinAritOperator) bool {
	switch text := op.String(); text {
	case "==", "!=", "<=", ">=":
		return false
	default:
		return strings.HasSuffix(text, "=")
	}
}

// anyVariable is counted if it is not known which variable a command sets: then none has a known value.
const anyVariable = ""

// countSetters counts what the words of a command may set, if one of them is a setter, also behind builtin and command.
func countSetters(call *syntax.CallExpr, counts map[string]int) {
	w := &walker{s: &session{opts: &Options{}}}
	sets, unknown := false, false
	var names []string
	for _, arg := range call.Args {
		copied := *arg
		v := w.value(arg)
		braces := syntax.SplitBraces(&copied) // One of its words may be the setter.
		sets = sets || braces || setters[v.text]
		switch {
		case !v.known, braces, strings.HasPrefix(v.text, "-") && strings.Contains(v.text, "a"):
			unknown = true
		case isName(v.text):
			names = append(names, v.text)
		}
	}
	if at := programAt(call); at < len(call.Args) && !w.value(call.Args[at]).known {
		sets = true
	}
	if !sets {
		return
	}
	for _, name := range names {
		counts[name] += unknowable
	}
	if unknown {
		counts[anyVariable] += unknowable
	}
}

// programAt returns which word of a command names what it runs, behind builtin, command and their options; behind command -v none does.
func programAt(call *syntax.CallExpr) int {
	w := &walker{s: &session{opts: &Options{}}}
	for i, arg := range call.Args {
		switch v := w.value(arg); {
		case v.is("builtin"), v.is("command"):
		case i == 0 || !v.known || !strings.HasPrefix(v.text, "-"):
			return i
		case strings.ContainsAny(v.text, "vV"):
			return len(call.Args)
		}
	}
	return len(call.Args)
}

// isArithmetic reports whether a word is $(( )) alone.
func isArithmetic(word *syntax.Word) bool {
	parts := word.Parts
	if len(parts) == 1 {
		if quoted, ok := parts[0].(*syntax.DblQuoted); ok {
			parts = quoted.Parts
		}
	}
	if len(parts) != 1 {
		return false
	}
	_, ok := parts[0].(*syntax.ArithmExp)
	return ok
}

// isName reports whether a text can be the name of a variable.
func isName(text string) bool { return syntax.ValidName(text) }

// harmlessNames are variables in upper case that change nothing but the language, the clock and the colours of what programs print.
var harmlessNames = map[string]bool{
	"TZ": true, "NO_COLOR": true, "CI": true, "FORCE_COLOR": true, "CLICOLOR": true, "CLICOLOR_FORCE": true, "COLUMNS": true, "LINES": true,
	"LANG": true, "LC_ALL": true, "LC_COLLATE": true, "LC_CTYPE": true, "LC_MESSAGES": true, "LC_NUMERIC": true, "LC_TIME": true, "FOO": true, "BAR": true,
}

// known in lower case, and not harmless: bash or programs read them.
var harmfulNames = map[string]bool{"histchars": true, "auto_resume": true, "path": true, "cdpath": true, "fpath": true, "http": true}

// harmless reports whether a variable may be set: its name is on the list, or in lower case and no program's.
func harmless(name string) bool {
	if harmlessNames[name] || len(name) == 1 && isName(name) && name != "_" {
		return true
	}
	if !isName(name) || strings.ToLower(name) != name || strings.Trim(name, "_") == "" {
		return false
	}
	return !harmfulNames[name] && !strings.HasSuffix(name, "_proxy") && !strings.HasPrefix(name, "npm_") && !strings.HasPrefix(name, "bash_")
}

// bashReads are the variables that bash itself reads, besides those of bashPrefixes (bash(1), Shell Variables).
var bashReads = func() map[string]bool {
	all := make(map[string]bool)
	for _, name := range strings.Fields(`CDPATH CHILD_MAX COLUMNS COMPREPLY COPROC DIRSTACK EMACS ENV EUID EXECIGNORE FCEDIT FIGNORE FUNCNAME FUNCNEST GLOBIGNORE GLOBSORT GROUPS
		HISTCMD HISTCONTROL HISTFILE HISTFILESIZE HISTIGNORE HISTSIZE HISTTIMEFORMAT HOME HOSTFILE HOSTNAME HOSTTYPE IFS IGNOREEOF INPUTRC INSIDE_EMACS LANG LINENO LINES MACHTYPE
		MAIL MAILCHECK MAILPATH MAPFILE OLDPWD OPTARG OPTERR OPTIND OSTYPE PATH PIPESTATUS POSIXLY_CORRECT PPID PROMPT_COMMAND PROMPT_DIRTRIM PS0 PS1 PS2 PS3 PS4 PWD RANDOM REPLY SECONDS SHELL
		SHELLOPTS SHLVL SRANDOM TERM TEXTDOMAIN TEXTDOMAINDIR TIMEFORMAT TMOUT TMPDIR TZ UID _`) {
		all[name] = true
	}
	return all
}()

var bashPrefixes = []string{"BASH", "COMP_", "EPOCH", "LC_", "READLINE_", "LIMPET"}

// mayHold reports whether a variable of the shell may be set, which no program gets unless it is exported. Of those that are not in lower case bash
// reads the ones above.
func (w *walker) mayHold(name string) bool {
	if harmless(name) {
		return true
	}
	exported := w.s.opts.Exported
	return exported != nil && isName(name) && !exported(name) && !bashReads[name] && (strings.ToUpper(name) == name || strings.ToLower(name) != name) &&
		!slices.ContainsFunc(bashPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// translates reports whether a text in $"" may be replaced by a translation: there may be a catalogue.
func (w *walker) translates() bool {
	exported := w.s.opts.Exported
	return exported == nil || exported("TEXTDOMAIN") || w.assigned["TEXTDOMAIN"] > 0 || w.assigned[anyVariable] > 0
}

// harmlessValue reports whether a value of a harmless variable is harmless too: a locale or a time zone may be a path of a file that
// the C library reads.
func harmlessValue(name string, v value) bool {
	if !harmlessNames[name] {
		return true
	}
	return v.known && !strings.ContainsAny(v.text, "/%:\\")
}

// assign is for name=value; stays says that no command follows it.
func (w *walker) assign(a *syntax.Assign, stays bool) {
	if a.Name == nil {
		if a.Value != nil {
			w.word(a.Value)
		}
		w.ask(KindAssignment, a, ruleAssignment, "what it sets is not known")
		return
	}
	name := a.Name.Value
	if a.Index != nil {
		w.subscript(a)
	}
	v := value{pattern: hidden}
	if a.Value != nil {
		w.handing(true, func() { v = w.word(a.Value) })
	}
	if a.Array != nil {
		for _, elem := range a.Array.Elems {
			if elem.Index != nil {
				w.arithmetic(elem.Index, a)
			}
			if elem.Value != nil {
				w.handing(true, func() { w.keep(name, w.words([]*syntax.Word{elem.Value})) })
			}
		}
	}
	switch {
	case !harmless(name) && !(stays && w.mayHold(name)):
		w.ask(KindAssignment, a, ruleAssignment, name+" is no variable that is known to be harmless: it may change which programs run, or how")
		return
	case a.Naked || !harmlessValue(name, v):
		w.ask(KindAssignment, a, ruleAssignment, "the value of "+name+" may be a path that programs read")
	case stays:
		from, to := w.node(a)
		w.addAt(KindAssignment, from, to, Allow, ruleVariable, "it sets a variable that no program reads")
	}
	if a.Index != nil || a.Array != nil || a.Append || !stays {
		w.keep(name, []value{v})
		return
	}
	if strings.Contains(v.pattern, ":~") {
		v = value{pattern: hidden} // Bash expands a tilde there, too.
	}
	w.hold(name, v)
}

// hold sets a variable. Its value is judged where it is used; and here, if it may be used where it is not known.
func (w *walker) hold(name string, v value) {
	if w.set(name, v); w.nested > 0 || !w.has(name) || w.unseen {
		w.keep(name, []value{v})
	}
}

// keep judges values of a variable that are not known where it is used, and what they are split into there.
func (w *walker) keep(name string, values []value) {
	if w.unquoted[name] {
		for _, v := range values {
			if parts := strings.Fields(v.pattern); len(parts) > 1 && w.expands(v, len(parts)*pieceSize) {
				for _, part := range parts {
					values = append(values, value{text: part, pattern: part, known: v.known, home: strings.HasPrefix(part, "~"), from: v.from, to: v.to})
				}
			}
		}
	}
	w.kept(values)
}

// findUses finds the variables that a text has without quotes, and whether it may read variables where their values are not known here: in a function,
// in a text that eval or a trap runs, or by another name. All that asks, but not in a sandbox.
func findUses(file *syntax.File) (unquoted map[string]bool, unseen bool) {
	unquoted = make(map[string]bool)
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Word:
			for _, part := range node.Parts {
				if p, ok := part.(*syntax.ParamExp); ok && p.Param != nil {
					unquoted[p.Param.Value] = true
				}
			}
		case *syntax.FuncDecl:
			unseen = true
		case *syntax.DeclClause:
			unseen = unseen || slices.ContainsFunc(node.Args, func(a *syntax.Assign) bool { return a.Name == nil }) // -n, say.
		case *syntax.ParamExp:
			unseen = unseen || node.Excl && (!allElements(node.Index) || node.Exp != nil || node.Slice != nil || node.Repl != nil) // Else it is the subscripts.
		case *syntax.CallExpr:
			if at := programAt(node); at < len(node.Args) {
				name := (&walker{s: &session{opts: &Options{}}}).value(node.Args[at]).text
				unseen = unseen || name == "eval" || name == "trap" || name == "source" || name == "."
			}
		}
		return true
	})
	return unquoted, unseen
}

// subscript is for that of an element that is set. Bash gives up the line for one that is below zero, and for a[@].
func (w *walker) subscript(a *syntax.Assign) {
	word, ok := a.Index.(*syntax.Word)
	w.broken = w.broken || !ok || strings.HasPrefix(word.Lit(), "-") || !isOperand(word.Lit())
	if !allElements(a.Index) {
		w.arithmetic(a.Index, a)
	}
}

// declare judges export, declare, typeset, local and the like. It allows plain assignments alone: options change what later
// assignments mean.
func (w *walker) declare(cmd *syntax.DeclClause) {
	variant := cmd.Variant.Value
	if changed, is := w.program(variant); is {
		from, to := w.node(cmd)
		w.changed(changed, from, to)
	}
	if variant != "export" && variant != "declare" && variant != "typeset" && variant != "local" {
		for _, a := range cmd.Args {
			w.declared(a)
		}
		w.ask(KindAssignment, cmd, ruleDeclaration, variant+" gives variables attributes that stay in the session")
		return
	}
	plain := true
	for _, a := range cmd.Args {
		plain = plain && a.Name != nil && !a.Naked && harmless(a.Name.Value)
		if variant == "export" {
			plain = plain && a.Name != nil && (harmlessNames[a.Name.Value])
		}
		w.declared(a)
	}
	switch {
	case len(cmd.Args) == 0:
		w.ask(KindCommand, cmd, ruleDeclaration, "it prints all variables, of which some are secrets")
	case !plain:
		w.ask(KindAssignment, cmd, ruleDeclaration, variant+" may print variables, give them attributes, or set some that change how commands run")
	default:
		from, to := w.node(cmd)
		w.addAt(KindAssignment, from, to, Allow, ruleVariable, "it sets a variable that no program reads")
	}
}

// declared walks a word of export and the like.
func (w *walker) declared(a *syntax.Assign) {
	if a.Name != nil && !a.Naked {
		w.assign(a, false)
		return
	}
	if a.Value != nil {
		w.word(a.Value)
	}
	if a.Index != nil {
		w.arithmetic(a.Index, a)
	}
}
