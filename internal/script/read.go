package script

import (
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// parseMax bounds the scripts that are parsed, in bytes. More would cost more than it is
// worth.
const parseMax = 64 << 10

// nestingMax bounds the brackets that are open at once. The stacks of the parser and of the
// walker grow with the nesting, and a goroutine that is out of stack ends the program.
const nestingMax = 500

// parsers keeps parsers for reuse: a new one costs more than a short script.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// parse returns the syntax tree of text. It returns nil if the text does not parse, is too
// long or too deep, or if bash 5.2 reads it differently than the parser.
func parse(text string) *syntax.File {
	file, _ := parseText(text)
	return file
}

// parseText is parse. It returns what the tree is of, too: see [Script.Parsed].
func parseText(text string) (file *syntax.File, read string) {
	if len(text) > parseMax || strings.HasSuffix(text, `\`) || nesting(text) > nestingMax {
		return nil, text
	}
	// The parser drops NUL bytes, and carriage returns at the end of a line. Bash cannot be
	// given the former, and makes the latter part of a word.
	if strings.IndexByte(text, 0) >= 0 || strings.Contains(text, "\r\n") {
		return nil, text
	}
	file, read = endComments(text)
	if file == nil || differs(file, read) {
		return nil, text
	}
	return file, read
}

// nesting returns how many brackets are open at once, at most. It counts quoted ones too.
func nesting(text string) int {
	open, most := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(', '{', '[':
			open++
			most = max(most, open)
		case ')', '}', ']':
			open = max(open-1, 0)
		}
	}
	return most
}

// joinedDollar is a $ at the end of a line that is joined to the next one. In double quotes and heredocs the parser takes it for itself, and
// bash for the beginning of what follows.
var joinedDollar = lazyregexp.New(`\$\\+\n`)

// differs reports whether the parser accepted what bash 5.2 rejects, or reads as something else.
func differs(file *syntax.File, text string) (found bool) {
	if joinedDollar().MatchString(text) {
		return true
	}
	if strings.Contains(text, "<<") { // Without it there can be no here-document: the tree is not walked for that.
		docs := documents{text: text}
		docs.walk(file, 0, false)
		found = docs.differs
	}
	syntax.Walk(file, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CmdSubst:
			// ${ command; } and ${|command;} came with bash 5.3.
			found = found || node.TempFile || node.ReplyVar
		case *syntax.FuncDecl:
			found = found || !compound(node.Body)
		}
		return !found
	})
	return found
}

// compound reports whether the statement can be the body of a function.
func compound(body *syntax.Stmt) bool {
	if body.Negated {
		return false
	}
	switch body.Cmd.(type) {
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause,
		*syntax.CaseClause, *syntax.ArithmCmd, *syntax.TestClause:
		return true
	}
	return false
}
