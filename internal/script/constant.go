package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// constant returns the text of a word without its quotes. It reports false if only bash can
// tell the text: the word has expansions, a pattern, braces or a tilde.
func constant(word *syntax.Word) (text string, ok bool) {
	if len(word.Parts) == 1 {
		if lit, ok := word.Parts[0].(*syntax.Lit); ok && !strings.ContainsAny(lit.Value, `\*?[{~`) {
			return lit.Value, true
		}
	}
	var b strings.Builder
	if !appendConstant(&b, word.Parts, false) {
		return "", false
	}
	return b.String(), true
}

// appendConstant appends the text of the parts, up to the first that is not constant: then
// it reports false.
func appendConstant(b *strings.Builder, parts []syntax.WordPart, quoted bool) bool {
	for i, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if quoted {
				appendQuoted(b, part.Value)
			} else if !appendUnquoted(b, part.Value, i == 0) {
				return false
			}
		case *syntax.SglQuoted:
			if part.Dollar && strings.Contains(part.Value, `\`) {
				return false
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			if !appendConstant(b, part.Parts, true) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// appendQuoted appends text that stands in double quotes.
func appendQuoted(b *strings.Builder, text string) {
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && strings.IndexByte("$`\"\\\n", text[i+1]) >= 0 {
			i++
		}
		b.WriteByte(text[i])
	}
}

// appendUnquoted appends text that stands in no quotes. It reports false at a character
// that bash may expand; first says that the text begins a word.
func appendUnquoted(b *strings.Builder, text string, first bool) bool {
	for i := 0; i < len(text); i++ {
		rest := text[i+1:]
		switch text[i] {
		case '\\':
			if rest == "" {
				return true
			}
			i++
		case '*', '?':
			return false
		case '[':
			if strings.IndexByte(rest, ']') >= 0 {
				return false
			}
		case '{':
			// The closing brace may be in another part of the word: {a,"b"}.
			if strings.IndexByte(rest, ',') >= 0 || strings.Contains(rest, "..") {
				return false
			}
		case '~':
			if first && i == 0 {
				return false
			}
		}
		b.WriteByte(text[i])
	}
	return true
}

// lead returns the constant text that a word begins with.
func lead(word *syntax.Word) string {
	var b strings.Builder
	appendConstant(&b, word.Parts, false)
	return b.String()
}

// mayBeOption reports whether a word that is not constant may expand to something that begins
// with a dash or a plus.
func mayBeOption(word *syntax.Word) bool {
	text := lead(word)
	return text == "" || text[0] == '-' || text[0] == '+'
}

// splits reports whether a word may become several words, or none.
func splits(word *syntax.Word) bool {
	if _, ok := constant(word); ok {
		return false
	}
	for _, part := range word.Parts {
		switch part := part.(type) {
		case *syntax.SglQuoted:
		case *syntax.DblQuoted:
			for _, inner := range part.Parts {
				if p, ok := inner.(*syntax.ParamExp); ok && all(p) {
					return true
				}
			}
		case *syntax.Lit:
			if !appendUnquoted(new(strings.Builder), part.Value, false) {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// all reports whether the expansion is that of $@, ${name[@]} or ${!name@}, which become
// several words in double quotes too, or has one of them in what stands for it: ${x-$@}.
func all(p *syntax.ParamExp) (found bool) {
	syntax.Walk(p, func(node syntax.Node) bool {
		switch node := node.(type) {
		case *syntax.CmdSubst, *syntax.ProcSubst:
			return false
		case *syntax.ParamExp:
			found = found || node.Param.Value == "@" || node.Names == syntax.NamesPrefixWords || indexText(node.Index) == "@" || node.Excl
		}
		return !found
	})
	return found
}

// program reports whether a word that is not constant can only be the path of a program: it
// has a slash in a literal, and cannot be split before it.
func program(word *syntax.Word) bool {
	if last, ok := word.Parts[len(word.Parts)-1].(*syntax.Lit); ok && strings.Contains(last.Value, "/") {
		return true
	}
	return !splits(word) && literalSlash(word.Parts)
}

func literalSlash(parts []syntax.WordPart) bool {
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			if strings.Contains(part.Value, "/") {
				return true
			}
		case *syntax.SglQuoted:
			if strings.Contains(part.Value, "/") {
				return true
			}
		case *syntax.DblQuoted:
			if literalSlash(part.Parts) {
				return true
			}
		}
	}
	return false
}

// number returns the value of a text of decimal digits, and -1 for any other, or a number
// that is not a descriptor's.
func number(text string) int {
	if text == "" || len(text) > 9 {
		return -1
	}
	n := 0
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return -1
		}
		n = n*10 + int(text[i]-'0')
	}
	return n
}
