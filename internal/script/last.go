package script

import "mvdan.cc/sh/v3/syntax"

// EndsWithChild reports whether bash has nothing to go on with when a program that it waits
// for has ended: the script is one command or pipeline, with builtins before it at most, as in
// "cd project && make". It errs on the side of no.
func (s *Script) EndsWithChild(lib *Library) bool {
	if s.file == nil || len(s.file.Stmts) == 0 {
		return false
	}
	before, last := s.file.Stmts[:len(s.file.Stmts)-1], s.file.Stmts[len(s.file.Stmts)-1]
	for _, stmt := range before {
		if !lib.childless(stmt) {
			return false
		}
	}
	return lib.endsWithChild(last)
}

func (l *Library) endsWithChild(stmt *syntax.Stmt) bool {
	if stmt.Background || substitutes(stmt) {
		return false
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		return l.isProgram(cmd) || l.childless(stmt)
	case *syntax.BinaryCmd:
		if cmd.Op == syntax.Pipe || cmd.Op == syntax.PipeAll {
			return l.endsWithChild(cmd.X) && l.endsWithChild(cmd.Y)
		}
		return l.childless(cmd.X) && l.endsWithChild(cmd.Y)
	}
	return false
}

// childless reports whether the statement consists of builtins that start nothing.
func (l *Library) childless(stmt *syntax.Stmt) bool {
	if stmt.Background || substitutes(stmt) {
		return false
	}
	switch cmd := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		if len(cmd.Args) == 0 {
			return true
		}
		name, certain := constant(cmd.Args[0])
		switch name {
		case ":", "[", "cd", "echo", "false", "popd", "printf", "pushd", "pwd", "set", "shift", "shopt", "test", "true", "umask", "unset":
			return certain && !l.has(name)
		}
		return false
	case *syntax.BinaryCmd:
		return cmd.Op != syntax.Pipe && cmd.Op != syntax.PipeAll && l.childless(cmd.X) && l.childless(cmd.Y)
	case *syntax.DeclClause, *syntax.TestClause:
		return true
	}
	return false
}

// isProgram reports whether the command is a program, rather than a function or a builtin that
// may run several.
func (l *Library) isProgram(cmd *syntax.CallExpr) bool {
	if len(cmd.Args) == 0 {
		return false
	}
	name, certain := constant(cmd.Args[0])
	return certain && name != "" && !isBuiltin(cmd.Args[0]) && !l.has(name)
}

// has reports whether the name is that of a function or an alias.
func (l *Library) has(name string) bool {
	_, isAlias := l.alias(name)
	if l == nil {
		return false
	}
	_, isFunction := l.functions[name]
	return isAlias || isFunction
}

// substitutes reports whether bash runs something for the words of the statement.
func substitutes(stmt *syntax.Stmt) (found bool) {
	syntax.Walk(stmt, func(node syntax.Node) bool {
		switch node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			found = true
		}
		return !found
	})
	return found
}
