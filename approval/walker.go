package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/internal/script"
)

// walker walks the tree of one text: the script, or a text in it that a shell reads.
type walker struct {
	plain    bool // the command that is judged is behind wrappers that run it as it is
	s        *session
	at       place
	depth    int              // texts within texts
	vars     map[string]value // what variables are here for certain: they were set on every way that leads here
	changes  []setting        // of vars, for apart
	assigned map[string]int   // how often the text sets a variable; unknowable: by a command
	unquoted map[string]bool  // the variables that it has without quotes, so that blanks split them
	unseen   bool             // it may read variables where it is not seen: see findUses
	broken   bool             // an expansion may have ended a line of the text before its end: what is set from there on may not be
	between  int              // added to those: how often others may set it before what is walked runs
	input    *syntax.Word     // the here-document or here-string of the command that is walked, if any
	document bool             // input is a here-document, and no here-string
	root     bool             // the command is run by sudo
	another  bool             // another shell reads the text, which remembers no files of programs
	posix    bool             // a sh reads the text, which may know no more builtins than POSIX has
	outside  bool             // the command is run by a program, which knows no builtins and functions
	repeated int              // the end of the last loop that is in no other: see loop
	hands    bool             // the substitutions in the words that are walked hand on what they print: names of files, as far as is known
	handed   bool             // so does the command that is walked
	nested   int              // the calls of apart that run
	listed   bool             // its standard input is a file
	fed      bool             // its standard input is a pipeline's
	piped    string           // the program that the standard input of the command comes from, if any
}

// nestingMax and innerMax bound the texts within texts that are read: how deep, and how many bytes in all.
const (
	nestingMax = 8
	innerMax   = 256 << 10
)

func containsCR(text string) bool { return strings.Contains(text, "\r") }

// has reports whether a variable's value is known here.
func (w *walker) has(name string) bool {
	_, ok := w.vars[name]
	return ok
}

// set notes what a variable is from here on. A variable that is set more than once may have the value of another
// assignment here, in a loop: if all are numbers, it is a number.
func (w *walker) set(name string, v value) {
	n := w.times(name)
	switch {
	case w.broken, n >= unknowable || w.assigned[anyVariable] > 0:
		w.forget(name)
	case n&(nonNumeric-1) > 1:
		w.forget(name)
		if n&nonNumeric == 0 && (v.numeric || v.number()) {
			w.put(name, value{numeric: true, pattern: hidden})
		}
	default:
		v.many = v.many && !v.numeric
		w.put(name, v)
	}
}

// times is how often a variable is set, with nonNumeric; 0: not at all.
func (w *walker) times(name string) int {
	n := w.assigned[name]
	if n > 0 {
		n += w.between
	}
	return n
}

// setting is what a variable was before it was set, or forgotten.
type setting struct {
	name   string
	before value
	had    bool
}

func (w *walker) put(name string, v value) {
	before, had := w.vars[name]
	w.changes = append(w.changes, setting{name, before, had})
	w.vars[name] = v
}

func (w *walker) forget(name string) {
	if before, had := w.vars[name]; had {
		w.changes = append(w.changes, setting{name, before, had})
		delete(w.vars, name)
	}
}

// numeric reports whether the parts of a word are a number that may not be known.
func (w *walker) numeric(parts []syntax.WordPart) bool {
	if w.onlyNumber(parts) {
		return true
	}
	if len(parts) != 1 {
		return false
	}
	switch part := parts[0].(type) {
	case *syntax.DblQuoted:
		return !part.Dollar && w.numeric(part.Parts)
	case *syntax.ParamExp:
		return isPlain(part) && (w.vars[part.Param.Value].numeric || w.vars[part.Param.Value].number())
	}
	return false
}

// apart walks what may not run, or runs in a subshell: what it sets is not known behind it.
func (w *walker) apart(walk func()) {
	mark, input, piped, at := len(w.changes), w.input, w.piped, w.s.at
	w.nested++
	walk()
	w.nested--
	w.s.at = w.s.union(at, w.s.at)
	for _, c := range slices.Backward(w.changes[mark:]) { // A copy of all variables for each branch would take too long where there are many of both.
		if c.had {
			w.vars[c.name] = c.before
		} else {
			delete(w.vars, c.name)
		}
	}
	w.changes, w.input, w.piped = w.changes[:mark], input, piped
}

// inner walks a text that a shell reads, and that the value v has; posix: the shell is no bash.
func (w *walker) inner(text string, v value, posix bool) {
	w.s.inner += len(text)
	from, to := v.from, v.to
	if w.depth >= nestingMax || w.s.inner > innerMax {
		w.addAt(KindScript, from, to, Ask, ruleUnreadable, "scripts in scripts are too deep or too long to be read")
		return
	}
	read := script.Read(text)
	file := read.File()
	if file == nil || containsCR(text) || posix && !sameInPosix(read) {
		w.addAt(KindScript, from, to, Ask, ruleUnreadable, "the script in it cannot be read")
		return
	}
	at := place{inside: true, from: from, to: to}
	if v.node != nil && len(v.node.Parts) == 1 && !w.at.inside {
		if quoted, ok := v.node.Parts[0].(*syntax.SglQuoted); ok && !quoted.Dollar && quoted.Value == text {
			at = place{offset: from + 1} // The bytes are the same.
		}
	}
	w.live(read.Parsed(), from, to)
	in := w.s.walker(file, at)
	in.depth, in.another, in.posix, in.handed = w.depth+1, true, posix, w.handed
	before := w.s.at
	in.statements(file.Stmts)
	w.s.at = w.s.union(before, w.s.at) // It may be another process.
}

// sameInPosix reports whether a POSIX sh reads a text as bash does.
func sameInPosix(read *script.Script) bool {
	text := read.Text()
	if strings.Contains(text, "$'") || strings.Contains(text, `$"`) || strings.Contains(text, "&>") {
		return false
	}
	// A [[ is a program's name there, and (( two subshells, in which a > writes.
	if strings.Contains(text, "[[") || strings.Contains(strings.ReplaceAll(text, "$((", ""), "((") {
		return false
	}
	return read.POSIX()
}

func (w *walker) statements(stmts []*syntax.Stmt) {
	for _, stmt := range stmts {
		w.statement(stmt)
	}
}

func (w *walker) statement(stmt *syntax.Stmt) {
	if stmt.Coprocess || stmt.Disown {
		w.ask(KindCommand, stmt, ruleShell, "it is none of bash's")
	}
	for _, redir := range stmt.Redirs {
		w.handing(redir.Hdoc != nil && (w.handed || w.s.takesNames(stmt)), func() {
			w.apart(func() { w.redirection(redir) }) // A program's are expanded in another process.
		})
	}
	fed := w.fed
	defer func() { w.fed = fed }()
	w.fed = fed && !stmt.Background && !stmt.Coprocess && !slices.ContainsFunc(stmt.Redirs, redirectsInput)
	walk := func() { w.command(stmt) }
	if stmt.Background || len(stmt.Redirs) > 0 { // One that fails keeps all from being run.
		w.apart(walk)
		return
	}
	walk()
}

// command walks a command. It knows the nodes that it allows; another kind asks.
func (w *walker) command(stmt *syntax.Stmt) {
	input, document, piped, listed := w.input, w.document, w.piped, w.listed
	defer func() { w.input, w.document, w.piped, w.listed = input, document, piped, listed }()
	for _, redir := range stmt.Redirs {
		switch redir.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			w.input, w.document, w.piped, w.listed = redir.Hdoc, true, "", false
			w.names(stmt, redir.Hdoc)
		case syntax.WordHdoc:
			w.input, w.document, w.piped, w.listed = redir.Word, false, "", false
			w.names(stmt, redir.Word)
		case syntax.RdrIn:
			w.input, w.piped, w.listed = nil, "", true
		}
	}
	switch cmd := stmt.Cmd.(type) {
	case nil:
	case *syntax.CallExpr:
		w.call(cmd)
	case *syntax.Subshell:
		w.subshell(func() { w.statements(cmd.Stmts) })
	case *syntax.Block:
		w.statements(cmd.Stmts)
	case *syntax.IfClause:
		w.ifClause(cmd)
	case *syntax.WhileClause:
		w.loop(cmd, func() {
			w.apart(func() { // A break may end the condition.
				w.statements(cmd.Cond)
				w.apart(func() { w.statements(cmd.Do) })
			})
		})
	case *syntax.ForClause:
		w.loop(cmd, func() { w.forClause(cmd) })
	case *syntax.BinaryCmd:
		w.binaryCommand(cmd)
	case *syntax.CaseClause:
		w.caseClause(cmd)
	case *syntax.FuncDecl:
		w.function(cmd)
	case *syntax.ArithmCmd:
		w.arithmetic(cmd.X, cmd)
	case *syntax.LetClause:
		w.ask(KindCommand, cmd, ruleArithmetic, "let evaluates its words as arithmetic, which can run commands: write $(( ))")
	case *syntax.TestClause:
		w.test(cmd.X)
	case *syntax.DeclClause:
		w.declare(cmd)
	case *syntax.TimeClause:
		w.time(cmd)
	case *syntax.CoprocClause:
		w.ask(KindCommand, cmd, ruleShell, "a coprocess stays in the session, with its descriptors")
		w.apart(func() { w.statement(cmd.Stmt) })
	default:
		w.ask(KindCommand, stmt, ruleShell, "this kind of command is not known")
	}
}

// time is for a command that is timed.
func (w *walker) time(cmd *syntax.TimeClause) {
	if !w.posix {
		if cmd.Stmt != nil {
			w.statement(cmd.Stmt)
		}
		return
	}
	// There it may be a program, which runs another, and sets nothing in the shell.
	c := &call{w: w, name: "time"}
	c.from, c.to = w.node(cmd)
	c.locate(c.name)
	c.add(Allow, "wrapper.time", "it runs a command, which is judged by itself")
	if cmd.Stmt == nil {
		return
	}
	if timed, ok := cmd.Stmt.Cmd.(*syntax.CallExpr); !ok || len(timed.Assigns) > 0 || cmd.Stmt.Negated {
		w.ask(KindCommand, cmd, ruleShell, "some shells have a program time, which runs no more than a program")
	}
	outside := w.outside
	w.outside = true
	w.apart(func() { w.statement(cmd.Stmt) })
	w.outside = outside
}

func (w *walker) ifClause(cmd *syntax.IfClause) {
	w.statements(cmd.Cond)
	w.apart(func() { w.statements(cmd.Then) })
	if cmd.Else != nil {
		w.apart(func() { w.ifClause(cmd.Else) })
	}
}

func (w *walker) forClause(cmd *syntax.ForClause) {
	switch loop := cmd.Loop.(type) {
	case *syntax.WordIter:
		var items []value
		w.handing(true, func() { items = w.words(loop.Items) })
		name := loop.Name.Value
		one := !cmd.Select && len(items) == 1 && items[0].known && !items[0].many
		if one {
			w.hold(name, items[0]) // It has that behind the loop, too.
		} else {
			w.keep(name, items)
		}
		if !w.mayHold(name) {
			w.ask(KindAssignment, loop.Name, ruleAssignment, "it sets a variable that may change how commands run")
		}
		w.apart(func() {
			if n := w.times(name); !one && (cmd.Select || !loop.InPos.IsValid() || n >= unknowable || w.assigned[anyVariable] > 0 || n&(nonNumeric-1) > 1) {
				w.forget(name)
			} else if !one {
				w.put(name, commonValue(items))
			}
			w.statements(cmd.Do)
		})
	case *syntax.CStyleLoop:
		w.arithmetic(loop.Init, loop)
		w.apart(func() {
			w.arithmetic(loop.Cond, loop)
			w.statements(cmd.Do)
			w.arithmetic(loop.Post, loop)
		})
	default:
		w.ask(KindCommand, cmd, ruleShell, "this kind of loop is not known")
	}
}

// commonValue returns what is true of each of the values.
func commonValue(values []value) value {
	all := value{noDash: true, numeric: true, solid: true, filled: true, pattern: hidden}
	for _, v := range values {
		all.noDash = all.noDash && !v.mayBeOption() && (!v.known || v.text != "")
		all.solid = all.solid && v.known && !v.many && !v.home && v.text != "" && !strings.ContainsAny(v.text, " \t\n*?[\\")
		all.filled = all.filled && (v.text != "" && !v.many || v.filled)
		all.numeric = all.numeric && (v.numeric || v.number())
	}
	return all
}

func (w *walker) binaryCommand(cmd *syntax.BinaryCmd) {
	switch cmd.Op {
	case syntax.AndStmt, syntax.OrStmt:
		w.statement(cmd.X)
		w.apart(func() { w.statement(cmd.Y) })
	case syntax.Pipe, syntax.PipeAll:
		handed := w.handed
		w.handed = handed || w.s.takesNames(cmd.Y)
		w.apart(func() { w.statement(cmd.X) })
		w.handed = handed
		fed := w.fed
		w.apart(func() {
			w.listed = false
			w.input, w.piped, w.fed = nil, w.s.source(cmd.X), true
			w.statement(cmd.Y)
		})
		w.fed = fed
	default:
		w.ask(KindCommand, cmd, ruleShell, "this operator is not known")
	}
}

func (w *walker) caseClause(cmd *syntax.CaseClause) {
	w.word(cmd.Word)
	for _, item := range cmd.Items {
		for _, pattern := range item.Patterns {
			w.apart(func() { w.word(pattern) }) // None is expanded behind one that matches.
		}
		w.apart(func() { w.statements(item.Stmts) })
	}
}

// function is for a definition: the body is walked, and the definition asks.
func (w *walker) function(cmd *syntax.FuncDecl) {
	if cmd.Name == nil || cmd.Body == nil {
		w.ask(KindDefinition, cmd, ruleShell, "this definition is none of bash's")
		return
	}
	if isFork(cmd) {
		from, to := w.node(cmd)
		w.addAt(KindDefinition, from, to, Deny, "deny.fork-bomb", "the function starts itself again and again, until nothing else can run")
	} else {
		w.ask(KindDefinition, cmd, ruleDefinition, "a function stays in the session, and its name means this from now on")
	}
	vars, changes := w.vars, w.changes
	w.vars, w.changes = make(map[string]value), nil
	w.between += 2 // What others set comes in between.
	at := w.s.at
	w.statement(cmd.Body)
	w.s.at = w.s.union(at, w.s.at)
	w.between -= 2
	w.vars, w.changes = vars, changes
}

// isFork reports whether a function calls itself in the background, or twice in a pipeline.
func isFork(cmd *syntax.FuncDecl) (found bool) {
	calls := func(node syntax.Node) (n int) {
		syntax.Walk(node, func(node syntax.Node) bool {
			if call, ok := node.(*syntax.CallExpr); ok && len(call.Args) > 0 && call.Args[0].Lit() == cmd.Name.Value {
				n++
			}
			return true
		})
		return n
	}
	syntax.Walk(cmd.Body, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.Stmt:
			found = found || node.Background && calls(node) > 0
		case *syntax.BinaryCmd:
			found = found || (node.Op == syntax.Pipe || node.Op == syntax.PipeAll) && calls(node) > 1
		}
		return !found
	})
	return found
}

// test is for the expression of a [[, in which comparisons of numbers are arithmetic.
func (w *walker) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		w.word(x)
	case *syntax.ParenTest:
		w.test(x.X)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			if v, ok := x.X.(*syntax.Word); !ok || !isName(v.Lit()) {
				w.ask(KindTest, x, ruleArithmetic, "-v evaluates the subscript of a name, which can run commands")
			}
		}
		w.test(x.X)
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if word, ok := side.(*syntax.Word); ok {
					w.operand(word, x)
				} else {
					w.ask(KindTest, x, ruleArithmetic, "what is compared as a number is not known")
				}
			}
		default:
			w.test(x.X)
			w.apart(func() { w.test(x.Y) })
		}
	default:
		w.ask(KindScript, x, ruleShell, "this kind of test is not known")
	}
}
