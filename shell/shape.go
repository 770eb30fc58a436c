package shell

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/ipc"
)

// parseMax bounds the scripts that are parsed, in bytes. More would cost more than
// it is worth, and the parser's stack grows with the depth of what it reads.
const parseMax = 64 << 10

// shape says how a script is put into its eval. The parser decides nothing
// about what bash may run: it only tells which scripts gain by it.
type shape struct {
	// inner has the script's status reported from inside of the eval. That
	// tells the stages of a pipeline, which are not known outside of it, and
	// spares a shell under set -e, which would end at an eval that returns
	// non-zero although the script itself did not.
	inner bool

	// group makes the script one command, so that an expansion that is fatal
	// in a script (${x:?}, set -u) ends it here too. An interactive bash would
	// give up the line, and go on with the next one.
	group bool

	// apart runs the script in a subshell, because it ends within a $( ). That
	// is a syntax error, which corrupts the heap of bash 5.2: it would crash
	// some commands later.
	apart bool
}

// shapeOf looks at the script. Only one that is complete can be reported on
// from inside: an open heredoc, or a backslash at the end, would swallow the
// report.
func (b *bash) shapeOf(script string) shape {
	if len(script) > parseMax || strings.HasSuffix(script, `\`) {
		return shape{}
	}
	if strings.Contains(b.flags, "v") || setsVerbose.MatchString(script) {
		return shape{} // Set -v would print the report.
	}
	nounset := strings.Contains(b.flags, "u") || setsNounset.MatchString(script)
	errexit := strings.Contains(b.flags, "e") || mentions(script, "-e", "errexit")
	demands := strings.Contains(script, "${") && strings.Contains(script, "?")
	substitutes := mentions(script, "$(", "<(", ">(")
	if !nounset && !errexit && !demands && !substitutes && !strings.Contains(script, "|") {
		return shape{}
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return shape{apart: substitutes && syntax.IsIncomplete(err)}
	}
	return shape{inner: true, group: groupable(script) && !b.assignsReadonly(script) && (nounset || demands && hasDemand(file))}
}

// What a script says that sets an option of the shell.
var (
	setsNounset = regexp.MustCompile(`set\s+-[a-zA-Z]*u|nounset`)
	setsVerbose = regexp.MustCompile(`set\s+-[a-zA-Z]*v|verbose`)
)

// groupable reports whether the script means the same when bash reads it whole
// before it runs the first line, and when an error that ends a line, in a
// script too, would end the group: a division by zero, a readonly variable.
func groupable(script string) bool {
	return !mentions(script, "alias", "shopt", "return", "posix", "((", "$[", "let", "readonly", "declare", "typeset", "local")
}

// assignsReadonly errs on the side of yes. An assignment to a variable that is
// readonly gives up a group with status 1, as a fatal expansion does.
func (b *bash) assignsReadonly(script string) bool {
	names := slices.Clone(b.saved.state.Readonly)
	for _, found := range makesReadonly.FindAllStringSubmatch(b.unsaved, -1) {
		for word := range strings.FieldsSeq(found[1]) {
			name, _, _ := strings.Cut(word, "=")
			names = append(names, name)
		}
	}
	return ipc.HasWord(script, names...)
}

// makesReadonly finds the words behind a readonly, and a declare -r.
var makesReadonly = regexp.MustCompile(`(?:readonly|(?:declare|typeset)\s+-[a-zA-Z]*r[a-zA-Z]*)\s+([^;&|\n]*)`)

// hasDemand reports whether there is a ${name?message} in the script.
func hasDemand(file *syntax.File) (found bool) {
	syntax.Walk(file, func(node syntax.Node) bool {
		if p, ok := node.(*syntax.ParamExp); ok && p.Exp != nil &&
			(p.Exp.Op == syntax.ErrorUnset || p.Exp.Op == syntax.ErrorUnsetOrNull) {
			found = true
		}
		return !found
	})
	return found
}

// commandNames returns the first words of the commands in the script. It reports
// false if the script cannot be parsed, or if only bash could tell one of them.
func commandNames(script string) (names []string, ok bool) {
	if len(script) > parseMax {
		return nil, false
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, false
	}
	ok = true
	syntax.Walk(file, func(node syntax.Node) bool {
		call, isCall := node.(*syntax.CallExpr)
		if !isCall {
			return true
		}
		for _, word := range call.Args {
			name, known := commandName(word)
			ok = ok && known
			names = append(names, name)
			if name != "builtin" && name != "command" {
				break
			}
		}
		return true
	})
	return names, ok
}

// commandName returns what a word is without its quotes. It reports false for a word
// with expansions, unless it is quoted as a whole and has a slash, and so is the
// path of a program.
func commandName(word *syntax.Word) (name string, known bool) {
	known = true
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch part := part.(type) {
			case *syntax.Lit:
				name += strings.ReplaceAll(part.Value, `\`, "")
			case *syntax.SglQuoted:
				name += part.Value
				known = known && !part.Dollar
			case *syntax.DblQuoted:
				add(part.Parts)
			default:
				known = false
			}
		}
	}
	add(word.Parts)
	if _, whole := word.Parts[0].(*syntax.DblQuoted); whole && len(word.Parts) == 1 && strings.Contains(name, "/") {
		return name, true
	}
	return name, known && !strings.Contains(name, "{")
}

func mentions(script string, words ...string) bool {
	for _, word := range words {
		if strings.Contains(script, word) {
			return true
		}
	}
	return false
}
