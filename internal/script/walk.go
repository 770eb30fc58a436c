package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// evalMax bounds the texts that are read for eval, in bytes, together: "eval eval eval ..."
// would be read once for each of its words.
const evalMax = 8 * parseMax

// function is the name of a function, and whether it is called, or defined, in a subshell.
type function struct {
	name string
	sub  bool
}

// body is the body of a function that was called.
type body struct {
	stmt *syntax.Stmt
	sub  bool
}

// walker collects the traits of a script. It walks a function's body when it meets a call of
// the function, in whatever order calls and definitions stand.
type walker struct {
	traits   Traits
	lib      *Library
	lastpipe bool // the last command of a pipeline runs in the shell itself

	sub       bool            // in a subshell, where nothing changes the shell
	function  bool            // in the body of a function
	expanding map[string]bool // aliases that are walked

	evaluated int // how much was read for eval, in bytes

	called  map[function]bool
	defined map[function][]*syntax.Stmt
	pending []body // of called functions, not yet walked
}

// script walks all statements of a script, and the functions that it calls.
func (w *walker) script(file *syntax.File) {
	w.statements(file.Stmts)
	w.function = true
	for len(w.pending) > 0 {
		next := w.pending[len(w.pending)-1]
		w.pending = w.pending[:len(w.pending)-1]
		w.sub = next.sub
		w.statement(next.stmt)
	}
}

// mark sets a trait, unless a subshell is walked.
func (w *walker) mark(trait *bool) {
	if !w.sub {
		*trait = true
	}
}

func (w *walker) changes() { w.mark(&w.traits.Changes) }

// unknown is for a command that cannot be read: it may do anything.
func (w *walker) unknown() {
	w.mark(&w.traits.Unknown)
	w.changes()
}

// subshell walks what runs in a process of its own.
func (w *walker) subshell(walk func()) {
	before := w.sub
	w.sub = true
	walk()
	w.sub = before
}

func (w *walker) statements(stmts []*syntax.Stmt) {
	for _, stmt := range stmts {
		w.statement(stmt)
	}
}

func (w *walker) statement(stmt *syntax.Stmt) {
	if stmt == nil {
		return
	}
	if stmt.Background {
		w.mark(&w.traits.Background)
		before := w.sub
		w.sub = true
		defer func() { w.sub = before }()
	}
	for _, redirect := range stmt.Redirs {
		w.redirect(redirect)
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(cmd, stays(stmt.Redirs))
	case *syntax.DeclClause:
		w.declClause(cmd, stays(stmt.Redirs))
	case *syntax.Block:
		w.statements(cmd.Stmts)
	case *syntax.Subshell:
		w.subshell(func() { w.statements(cmd.Stmts) })
	case *syntax.BinaryCmd:
		w.binary(cmd)
	case *syntax.IfClause:
		for clause := cmd; clause != nil; clause = clause.Else {
			w.statements(clause.Cond)
			w.statements(clause.Then)
		}
	case *syntax.WhileClause:
		w.statements(cmd.Cond)
		w.statements(cmd.Do)
	case *syntax.ForClause:
		w.loop(cmd)
	case *syntax.CaseClause:
		w.word(cmd.Word)
		for _, item := range cmd.Items {
			w.words(item.Patterns)
			w.statements(item.Stmts)
		}
	case *syntax.FuncDecl:
		w.define(cmd)
	case *syntax.ArithmCmd:
		w.arithmetic(cmd.X)
	case *syntax.LetClause:
		for _, x := range cmd.Exprs {
			w.arithmetic(x)
		}
	case *syntax.TestClause:
		w.mark(&w.traits.Test)
		w.test(cmd.X)
	case *syntax.TimeClause:
		w.statement(cmd.Stmt)
	case *syntax.CoprocClause:
		w.coproc(cmd)
	}
}

func (w *walker) binary(cmd *syntax.BinaryCmd) {
	if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
		w.mark(&w.traits.Pipeline)
		w.subshell(func() { w.statement(cmd.X) })
		if w.lastpipe {
			w.statement(cmd.Y) // If that is a pipeline, this goes for its own last command.
		} else {
			w.subshell(func() { w.statement(cmd.Y) })
		}
		return
	}
	w.statement(cmd.X)
	w.statement(cmd.Y)
}

func (w *walker) loop(cmd *syntax.ForClause) {
	switch loop := cmd.Loop.(type) {
	case *syntax.WordIter:
		w.assign(loop.Name.Value)
		if cmd.Select {
			w.assign("REPLY")
		}
		w.words(loop.Items)
	case *syntax.CStyleLoop:
		w.arithmetic(loop.Init)
		w.arithmetic(loop.Cond)
		w.arithmetic(loop.Post)
	}
	w.statements(cmd.Do)
}

func (w *walker) coproc(cmd *syntax.CoprocClause) {
	w.mark(&w.traits.Background)
	w.mark(&w.traits.Descriptors)
	if cmd.Name != nil {
		w.word(cmd.Name)
		w.assignWord(cmd.Name)
	} else {
		w.assign("COPROC")
	}
	w.subshell(func() { w.statement(cmd.Stmt) })
}

func (w *walker) define(cmd *syntax.FuncDecl) {
	w.changes()
	w.mark(&w.traits.Functions)
	if cmd.Name == nil {
		return
	}
	name := strings.ReplaceAll(cmd.Name.Value, `\`, "")
	switch name {
	case "builtin":
		w.mark(&w.traits.BuiltinFunction)
	case "command":
		w.mark(&w.traits.CommandFunction)
	}
	key := function{name, w.sub}
	if w.defined == nil {
		w.defined = make(map[function][]*syntax.Stmt)
	}
	w.defined[key] = append(w.defined[key], cmd.Body)
	// A subshell has the functions of its shell too.
	if !w.sub && w.called[function{name, false}] {
		w.pending = append(w.pending, body{cmd.Body, false})
	}
	if w.called[function{name, true}] {
		w.pending = append(w.pending, body{cmd.Body, true})
	}
}

// callFunction has the bodies of the functions of this name walked, if there are any.
func (w *walker) callFunction(name string) {
	key := function{name, w.sub}
	if w.called[key] {
		return
	}
	if w.called == nil {
		w.called = make(map[function]bool)
	}
	w.called[key] = true
	for _, stmt := range w.defined[function{name, false}] {
		w.pending = append(w.pending, body{stmt, w.sub})
	}
	if w.sub {
		for _, stmt := range w.defined[key] {
			w.pending = append(w.pending, body{stmt, true})
		}
	}
	if stmt, ok := w.lib.function(name); !ok {
		return
	} else if stmt == nil {
		w.unknown()
	} else {
		w.pending = append(w.pending, body{stmt, w.sub})
	}
}

func (w *walker) redirect(redirect *syntax.Redirect) {
	if redirect.N != nil {
		if name, ok := strings.CutPrefix(redirect.N.Value, "{"); ok {
			w.mark(&w.traits.Descriptors)
			name, _, element := strings.Cut(strings.TrimSuffix(name, "}"), "[")
			if element {
				w.fails()
			}
			w.assign(name)
		} else {
			w.descriptor(redirect.N.Value)
		}
	}
	w.word(redirect.Word)
	if redirect.Op == syntax.DplIn || redirect.Op == syntax.DplOut {
		if text, ok := constant(redirect.Word); ok {
			w.descriptor(strings.TrimSuffix(text, "-"))
		} else {
			w.mark(&w.traits.High) // It may be any.
		}
	}
	if redirect.Hdoc != nil {
		w.parts(redirect.Hdoc.Parts)
	}
}

// descriptor is for the number of a descriptor.
func (w *walker) descriptor(text string) {
	n := number(text)
	if n >= 10 {
		w.mark(&w.traits.High)
	}
	if n == 255 {
		w.traits.Tty = true
	}
}

// stays reports whether one of the redirections stays in the shell if they are those of an
// exec: the standard streams are limpet's, which takes them back behind each script.
func stays(redirects []*syntax.Redirect) bool {
	for _, redirect := range redirects {
		if redirect.N != nil && number(redirect.N.Value) > 2 {
			return true
		}
	}
	return false
}
