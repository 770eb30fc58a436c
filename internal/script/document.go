package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// documents reads the here-documents of a text again, line by line as bash does, and finds those that end elsewhere for the parser.
type documents struct {
	text    string
	differs bool
	named   int // where the last document was named
	line    int // the end of that line
	end     int // of that document, with the line that ends it
}

// walk looks at the documents below a node. inside is where the innermost $( ) or <( ) ends, and 0 outside of them; nested says that the node is
// in another document, or in backquotes: bash reads those twice, and what ends them is not known here.
func (d *documents) walk(root syntax.Node, inside int, nested bool) {
	syntax.Walk(root, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CmdSubst:
			if node != root {
				d.walk(node, int(node.End().Offset()), nested || node.Backquotes)
				return false
			}
		case *syntax.ProcSubst:
			if node != root {
				d.walk(node, int(node.End().Offset()), nested)
				return false
			}
		case *syntax.Redirect:
			if node == root || node.Op != syntax.Hdoc && node.Op != syntax.DashHdoc {
				break
			}
			d.differs = d.differs || nested || !d.document(node, inside)
			if node.Hdoc != nil {
				d.walk(node.Hdoc, inside, true)
			}
			return false
		}
		return !d.differs
	})
}

// document reports whether a document ends for bash where it does for the parser.
func (d *documents) document(redirect *syntax.Redirect, inside int) bool {
	stop, quoted, ok := delimiter(redirect.Word)
	if !ok {
		return false
	}
	named := int(redirect.Word.End().Offset())
	line, start := d.line, d.end // There may be two on a line.
	if named < d.named || named >= d.line {
		line = d.lineEnd(named)
		start = line
	}
	for from := start; from < len(d.text); {
		text, next := d.read(from, quoted)
		if redirect.Op == syntax.DashHdoc {
			text = strings.TrimLeft(text, "\t")
		}
		rest, begins := strings.CutPrefix(text, stop)
		if begins && rest == "" {
			d.named, d.line, d.end = named, line, next
			return (inside == 0 || next <= inside) && d.endsAt(redirect.Hdoc, start, from, next)
		}
		if begins && inside > 0 && strings.Contains(rest, ")") {
			return false // Bash 5.2 ends it there: $(cat <<E\nE)
		}
		from = next
	}
	return false
}

// endsAt reports whether the parser's document, which begins at start, ends with the line between from and next, as it counts that to the document.
func (d *documents) endsAt(body *syntax.Word, start, from, next int) bool {
	if body == nil || len(body.Parts) == 0 {
		return start == from
	}
	// Bash reads it at the first newline, also within what the parser has end before: an array, [[ ]], parentheses.
	if begins := int(body.Pos().Offset()); begins < start || strings.Trim(d.text[start:begins], "\t") != "" {
		return false
	}
	last := strings.TrimSuffix(d.text[from:next], "\n")
	return int(body.End().Offset()) == from+len(last)
}

// lineEnd returns where the line ends that has an offset, and those that a backslash joins to it.
func (d *documents) lineEnd(offset int) int {
	for i := offset; i < len(d.text); i++ {
		switch d.text[i] {
		case '\\':
			i++
		case '\n':
			return i + 1
		}
	}
	return len(d.text)
}

// read returns the line from an offset on, and where the next one begins. Lines of a document whose delimiter is not quoted are joined.
func (d *documents) read(from int, quoted bool) (line string, next int) {
	var b strings.Builder
	for i := from; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '\n':
			return b.String(), i + 1
		case c == '\\' && !quoted && i+1 < len(d.text):
			if i++; d.text[i] == '\n' {
				continue
			}
			b.WriteByte(c)
			b.WriteByte(d.text[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), len(d.text)
}

// delimiter returns the text of the line that ends a document, and whether it was quoted. It reports false if bash and the parser may make
// different texts of the word.
func delimiter(word *syntax.Word) (text string, quoted, ok bool) {
	var b strings.Builder
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			for i := 0; i < len(part.Value); i++ {
				if part.Value[i] == '\\' {
					if i++; i == len(part.Value) {
						return "", false, false
					}
					quoted = true
				}
				b.WriteByte(part.Value[i])
			}
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", false, false
			}
			quoted = true
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			quoted = true
			for _, inner := range part.Parts {
				lit, literal := inner.(*syntax.Lit)
				if !literal || part.Dollar || strings.Contains(lit.Value, `\`) {
					return "", false, false
				}
				b.WriteString(lit.Value)
			}
		default:
			return "", false, false
		}
	}
	return b.String(), quoted, !strings.Contains(b.String(), "\n")
}
