package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// commentsMax bounds the comments of a text that end in a backslash: it is parsed once more for each.
const commentsMax = 64

// endComments parses a text, and returns what the tree is of: the text, with a space for each backslash that ends a comment. The
// parser joins the next line to such a comment, and bash does not. It returns nil if the text does not parse, or if that is in backquotes,
// where bash joins the lines, too, but by rules of its own.
func endComments(text string) (*syntax.File, string) {
	for range commentsMax {
		parser := parsers.Get().(*syntax.Parser)
		file, err := parser.Parse(strings.NewReader(text), "")
		parsers.Put(parser)
		if err != nil {
			return nil, text
		}
		at, quoted := joinedComment(file, text)
		if quoted {
			return nil, text
		}
		if at < 0 {
			return file, text
		}
		text = text[:at] + " " + text[at+1:]
	}
	return nil, text
}

// joinedComment returns where the first backslash is that ends a comment, or -1, and whether there is one in backquotes.
func joinedComment(file *syntax.File, text string) (at int, quoted bool) {
	if !strings.Contains(text, "\\\n") || !strings.Contains(text, "#") { // Without both there can be none: the tree is not walked for that.
		return -1, false
	}
	bytes := kinds(file, len(text))
	comment := false
	for i := range len(text) {
		switch {
		case text[i] == '\n':
			comment = false
		case text[i] == '#' && bytes[i] != inWord:
			comment = true
		case comment && text[i] == '\\' && i+1 < len(text) && text[i+1] == '\n':
			if bytes[i] == inBackquotes {
				return -1, true
			}
			if text[i-1] != '\\' { // The parser takes two of them as one character.
				return i, false
			}
		}
	}
	return -1, false
}

// What a byte of a text is in: outside of words there are blanks, operators, reserved words and comments.
const (
	outside = iota
	inWord
	inBackquotes // and outside of the words in them
)

// kinds tells what each byte of a text is in. A # outside of words begins a comment.
func kinds(file *syntax.File, size int) []byte {
	bytes := make([]byte, size)
	fill := func(node syntax.Node, kind byte) {
		from, to := min(int(node.Pos().Offset()), size), min(int(node.End().Offset()), size)
		for i := from; i < to; i++ {
			bytes[i] = kind
		}
	}
	var walk func(node syntax.Node, between byte)
	walk = func(root syntax.Node, between byte) {
		syntax.Walk(root, func(node syntax.Node) bool {
			switch node := node.(type) {
			case *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted, *syntax.ParamExp, *syntax.ArithmExp, *syntax.ArithmCmd, *syntax.CStyleLoop, *syntax.ExtGlob:
				fill(node, inWord)
			case *syntax.Redirect:
				if node.Hdoc != nil && len(node.Hdoc.Parts) > 0 {
					fill(node.Hdoc, inWord)
				}
			case *syntax.CmdSubst:
				if node.Backquotes && between != inBackquotes {
					fill(node, inBackquotes)
					for _, stmt := range node.Stmts {
						walk(stmt, inBackquotes)
					}
					return false
				}
				fill(node, between)
			case *syntax.ProcSubst:
				fill(node, between)
			}
			return true
		})
	}
	walk(file, outside)
	return bytes
}
