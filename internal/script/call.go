package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call walks a simple command; redirected says that it has redirections.
func (w *walker) call(cmd *syntax.CallExpr, redirected bool) {
	for _, assign := range cmd.Assigns {
		w.assignment(assign)
		w.checkName(assign.Name.Value)
	}
	if len(cmd.Args) == 0 {
		w.changes()
		return
	}
	w.words(cmd.Args)
	if !w.alias(cmd.Args, redirected) {
		w.command(cmd.Args, redirected, true)
	}
}

// alias walks what a command is that begins with an alias. It reports false if the command does not.
func (w *walker) alias(words []*syntax.Word, redirected bool) bool {
	name := words[0].Lit()
	value, ok := w.lib.alias(name)
	if !ok || w.expanding[name] {
		return false
	}
	file := parse(value)
	if file == nil || len(file.Stmts) == 0 {
		w.traits.Unreadable = true // It opens a quote, or a heredoc, say.
		return true
	}
	if w.expanding == nil {
		w.expanding = make(map[string]bool)
	}
	w.expanding[name] = true
	defer delete(w.expanding, name)
	last := len(file.Stmts) - 1
	w.statements(file.Stmts[:last])
	call, ok := file.Stmts[last].Cmd.(*syntax.CallExpr)
	if !ok || file.Stmts[last].Background {
		w.statement(file.Stmts[last])
		return true
	}
	whole := *call
	whole.Args = append(call.Args[:len(call.Args):len(call.Args)], words[1:]...)
	w.call(&whole, redirected || stays(file.Stmts[last].Redirs))
	return true
}

// command is for the words of a command, walked already, from its name on; functions says
// that the name may be that of a function.
func (w *walker) command(words []*syntax.Word, redirected, functions bool) {
	if len(words) == 0 {
		return
	}
	name, ok := constant(words[0])
	if !ok {
		if !program(words[0]) {
			w.unknown()
		}
		return
	}
	if functions {
		w.callFunction(name)
	}
	switch name {
	case "builtin":
		words = words[1:]
		if len(words) > 0 && words[0].Lit() == "--" {
			words = words[1:]
		}
		w.command(words, redirected, false)
	case "command":
		w.commandBuiltin(words[1:], redirected)
	case "exec":
		w.exec(words[1:], redirected)
	default:
		w.builtin(name, words[1:])
	}
}

// commandBuiltin is for the words behind "command".
func (w *walker) commandBuiltin(words []*syntax.Word, redirected bool) {
	options, rest, certain := parseOptions(words, "")
	if !certain {
		w.unknown()
		return
	}
	for _, option := range options {
		if option.letter == 'v' || option.letter == 'V' {
			return // It only says what the name is.
		}
	}
	w.command(rest, redirected, false)
}

// exec is for the words behind "exec".
func (w *walker) exec(words []*syntax.Word, redirected bool) {
	w.changes()
	_, rest, certain := parseOptions(words, "a")
	if !certain || len(rest) > 0 {
		w.mark(&w.traits.Exits)
	}
	for _, word := range rest {
		if !splits(word) {
			return // There is a program, for certain.
		}
	}
	if redirected {
		w.mark(&w.traits.Descriptors)
	}
}

// eval is for the words behind "eval".
func (w *walker) eval(words []*syntax.Word) {
	if len(words) > 0 && words[0].Lit() == "--" {
		words = words[1:]
	}
	var b strings.Builder
	for i, word := range words {
		text, ok := constant(word)
		if !ok {
			w.unknown()
			return
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(text)
	}
	w.evaluated += b.Len()
	var file *syntax.File
	if w.evaluated <= evalMax {
		file = parse(b.String())
	}
	if file == nil {
		w.unknown()
		return
	}
	w.statements(file.Stmts)
}

// option is an option of a builtin, and its argument, if it has one.
type option struct {
	letter byte
	arg    string
	known  bool         // arg is constant, or there is no arg
	word   *syntax.Word // the argument's, if it is a word of its own
}

// parseOptions returns the options that the words begin with, and what comes behind them. The
// letters in withArg have an argument. It stops at a word that may be an option or not, and
// reports that it is not certain.
func parseOptions(words []*syntax.Word, withArg string) (options []option, rest []*syntax.Word, certain bool) {
	for len(words) > 0 {
		text, ok := constant(words[0])
		if !ok {
			return options, words, !mayBeOption(words[0])
		}
		if text == "--" {
			return options, words[1:], true
		}
		if len(text) < 2 || text[0] != '-' {
			return options, words, true
		}
		words = words[1:]
		for i := 1; i < len(text); i++ {
			o := option{letter: text[i], known: true}
			if strings.IndexByte(withArg, text[i]) < 0 {
				options = append(options, o)
				continue
			}
			if i+1 < len(text) {
				o.arg = text[i+1:]
			} else if len(words) > 0 {
				o.word = words[0]
				o.arg, o.known = constant(words[0])
				words = words[1:]
			}
			options = append(options, o)
			break
		}
	}
	return options, nil, true
}
