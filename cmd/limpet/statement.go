package main

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// incomplete reports whether text is the beginning of a statement that goes on
// in the next line. Text that is simply wrong is complete: bash shall say what
// is wrong with it.
func incomplete(text string) bool {
	file, err := parse(text)
	if err != nil {
		return syntax.IsIncomplete(err)
	}
	return continued(text) && !endsInComment(file, text)
}

func parse(text string) (*syntax.File, error) {
	return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
}

// continued reports whether the last line ends in a backslash that quotes the
// newline. To a parser that sees the end of the input there, it means nothing.
func continued(text string) bool {
	line := strings.TrimSuffix(text, "\n")
	slashes := len(line) - len(strings.TrimRight(line, `\`))
	return slashes%2 == 1
}

// endsInComment is about "# this \", which is not continued.
func endsInComment(file *syntax.File, text string) bool {
	end := uint(len(strings.TrimSuffix(text, "\n")))
	found := false
	syntax.Walk(file, func(node syntax.Node) bool {
		if comment, ok := node.(*syntax.Comment); ok && comment.End().Offset() >= end {
			found = true
		}
		return !found
	})
	return found
}

// mustExit reports whether the last command of the statement is a plain exit: whatever stands
// before it, the shell that runs this has ended. Of some statements it is not known by their
// result: under set -v, or behind an alias.
func mustExit(text string) bool {
	file, err := parse(text)
	if err != nil || len(file.Stmts) == 0 {
		return false
	}
	last := file.Stmts[len(file.Stmts)-1]
	call, ok := last.Cmd.(*syntax.CallExpr)
	if !ok || elsewhere(last) || len(call.Args) == 0 || call.Args[0].Lit() != "exit" {
		return false
	}
	// Bash does not exit if there are two words, and an expansion may be two.
	return len(call.Args) == 1 || len(call.Args) == 2 && call.Args[1].Lit() != ""
}

// wantsExit reports whether the statement says exit, or replaces the shell by
// exec. When the shell that runs it ends after one of those, the user wanted to leave. When it
// ends for another reason (set -e, set -u, a script that was sourced), a shell
// that stays is what limpet is for.
func wantsExit(text string) bool {
	file, err := parse(text)
	if err != nil {
		return false
	}
	found := false
	syntax.Walk(file, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok {
			found = found || leaves(call.Args)
		}
		return !found && !elsewhere(node)
	})
	return found
}

// elsewhere is true of what does not run in the shell itself, or not yet: an
// exit in there does not end it.
func elsewhere(node syntax.Node) bool {
	switch node := node.(type) {
	case *syntax.Subshell, *syntax.CmdSubst, *syntax.ProcSubst, *syntax.FuncDecl:
		return true
	case *syntax.BinaryCmd:
		return node.Op == syntax.Pipe || node.Op == syntax.PipeAll
	case *syntax.Stmt:
		return node.Background
	}
	return false
}

func leaves(words []*syntax.Word) bool {
	for len(words) > 0 {
		switch words[0].Lit() {
		case "exit":
			return true
		case "exec":
			return len(words) > 1 // Without a program it only redirects.
		case "builtin", "command":
			words = words[1:]
		default:
			return false
		}
	}
	return false
}
