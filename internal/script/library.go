package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Library is the functions that a shell has, by name, each as it is declared: NAME () { ... },
// the names of its readonly variables, its aliases, and whether lastpipe is on. The zero value has none. It is not safe for
// concurrent use.
type Library struct {
	functions map[string]string
	readonly  map[string]bool
	aliases   map[string]string
	lastpipe  bool
	read      map[string]*syntax.Stmt // bodies of functions; nil if a function is unreadable
}

// NewLibrary returns a Library of these functions. They are read when they are called.
func NewLibrary(functions map[string]string) *Library { return &Library{functions: functions} }

// WithReadonly sets the names of the readonly variables, for [Traits.Readonly], and returns
// the Library.
func (l *Library) WithReadonly(names []string) *Library {
	l.readonly = make(map[string]bool, len(names))
	for _, name := range names {
		l.readonly[name] = true
	}
	return l
}

// WithAliases sets the aliases that the shell expands, and returns the Library.
func (l *Library) WithAliases(aliases map[string]string) *Library {
	l.aliases = aliases
	return l
}

// WithLastpipe says whether the last command of a pipeline runs in the shell itself (shopt
// lastpipe), and returns the Library.
func (l *Library) WithLastpipe(on bool) *Library {
	l.lastpipe = on
	return l
}

func (l *Library) hasLastpipe() bool { return l != nil && l.lastpipe }

// alias returns what an alias stands for.
func (l *Library) alias(name string) (value string, ok bool) {
	if l == nil || name == "" {
		return "", false
	}
	value, ok = l.aliases[name]
	return value, ok
}

// function returns the body of a function: nil if it is unreadable. It reports false if
// there is no such function.
func (l *Library) function(name string) (body *syntax.Stmt, ok bool) {
	if l == nil {
		return nil, false
	}
	text, ok := l.functions[name]
	if !ok {
		return nil, false
	}
	if body, ok := l.read[name]; ok {
		return body, true
	}
	// The parser takes no function of a name like "export" or "let": it gets another name.
	_, rest, _ := strings.Cut(text, "()")
	if file := parse("f ()" + rest); file != nil && len(file.Stmts) == 1 {
		if declaration, ok := file.Stmts[0].Cmd.(*syntax.FuncDecl); ok {
			body = declaration.Body
		}
	}
	if l.read == nil {
		l.read = make(map[string]*syntax.Stmt)
	}
	l.read[name] = body
	return body, true
}
