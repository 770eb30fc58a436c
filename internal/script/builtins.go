package script

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// builtin is for a command by its name, and the words behind it. A name that is not that
// of a builtin is a program's, which changes nothing in the shell.
func (w *walker) builtin(name string, words []*syntax.Word) {
	if strings.HasPrefix(name, "%") {
		w.mark(&w.traits.Jobs) // As fg does.
		return
	}
	t := &w.traits
	switch name {
	case ":", "true", "false", "echo", "pwd", "type", "hash", "times", "break", "continue", "caller", "help":
	case "exit", "logout", "suspend":
		w.mark(&t.Exits)
	case "return":
		if !w.function {
			t.Returns = true
		}
	case ".", "source":
		w.mark(&t.Sources)
		w.unknown()
	case "eval":
		w.mark(&t.Sources)
		w.eval(words)
	case "set":
		w.set(words)
	case "shopt":
		w.shopt(words)
	case "trap":
		w.trap(words)
	case "kill":
		w.kill(words)
	case "jobs":
		w.jobs(words)
	case "fg", "bg", "disown":
		w.mark(&t.Jobs)
	case "wait":
		w.mark(&t.Jobs)
		w.optionAssigns(words, "p")
	case "printf":
		if !w.optionAssigns(words, "v") {
			w.changes()
		}
	case "test", "[":
		w.testBuiltin(words)
	case "enable":
		w.mark(&t.Enable)
		w.changes()
	case "ulimit":
		w.mark(&t.Limits)
		w.changes()
	case "alias", "unalias":
		w.mark(&t.Aliases)
		w.changes()
	case "let":
		w.fails()
		w.assignAny()
	case "declare", "typeset", "local", "export", "readonly":
		w.declare(name, words)
	case "read":
		w.readBuiltin(words, "adinNptu", "REPLY")
	case "mapfile", "readarray":
		w.readBuiltin(words, "dnOsuCc", "MAPFILE")
	case "getopts":
		w.assign("OPTIND")
		w.assign("OPTARG")
		if len(words) > 1 {
			w.assignWord(words[1])
		}
	case "unset":
		_, rest, _ := parseOptions(words, "")
		w.changes()
		w.mark(&w.traits.Functions)
		for _, word := range rest {
			w.assignWord(word)
		}
	case "cd", "pushd", "popd":
		w.assign("PWD")
		w.assign("OLDPWD")
	case "compgen", "fc":
		w.runs(words)
	case "bind", "complete", "compopt", "dirs", "history", "shift", "umask":
		w.changes()
	}
}

// optionAssigns is for an option whose argument is the name of a variable. It reports false
// if only bash can tell the options.
func (w *walker) optionAssigns(words []*syntax.Word, letter string) (certain bool) {
	options, _, certain := parseOptions(words, letter)
	for _, option := range options {
		if option.letter == letter[0] {
			w.assignOption(option)
		}
	}
	return certain
}

func (w *walker) assignOption(option option) {
	if option.word != nil {
		w.assignWord(option.word)
	} else {
		name, subscript, _ := strings.Cut(option.arg, "[")
		if subscript != "" {
			w.fails()
		}
		w.assign(name)
	}
}

// readBuiltin is for read and mapfile, which assign to the names behind their options, or to
// the variable fallback.
func (w *walker) readBuiltin(words []*syntax.Word, withArg, fallback string) {
	options, rest, certain := parseOptions(words, withArg)
	for _, option := range options {
		switch option.letter {
		case 'u':
			w.descriptor(option.arg)
		case 'a':
			w.assignOption(option)
		case 'C':
			w.unknown() // It runs a command for each so many lines.
		}
	}
	if !certain {
		w.assignAny()
		if fallback == "MAPFILE" {
			w.unknown()
		}
	}
	if len(rest) == 0 {
		w.assign(fallback)
	}
	for _, word := range rest {
		w.assignWord(word)
	}
}

// testBuiltin is for test and [.
func (w *walker) testBuiltin(words []*syntax.Word) {
	for i, word := range words[:max(len(words)-1, 0)] {
		if text := word.Lit(); text == "-v" || text == "-R" {
			w.nameTested(words[i+1])
		}
	}
}

// runs is for builtins that run functions or commands by some of their options: compgen -F
// and -C, fc but for fc -l.
func (w *walker) runs(words []*syntax.Word) {
	w.changes()
	for _, word := range words {
		text, ok := constant(word)
		if ok && (text == "-l" || strings.HasPrefix(text, "-") && !strings.ContainsAny(text, "FCes")) {
			continue
		}
		if !ok && !mayBeOption(word) || ok && !strings.HasPrefix(text, "-") {
			continue
		}
		w.unknown()
	}
	if len(words) == 0 {
		w.unknown() // fc edits the last command, and runs it.
	}
}

// jobs is for the words behind "jobs". With -x it runs a command.
func (w *walker) jobs(words []*syntax.Word) {
	w.mark(&w.traits.Jobs)
	options, rest, _ := parseOptions(words, "")
	for _, option := range options {
		if option.letter == 'x' {
			w.command(rest, false, true)
		}
	}
}

// kill is for the words behind "kill". The shell itself is $$ in subshells too.
func (w *walker) kill(words []*syntax.Word) {
	if len(words) > 0 {
		switch text, _ := constant(words[0]); text {
		case "-l", "-L", "-0":
			return // It lists signals, or asks whether there is such a process.
		case "-s", "-n":
			words = words[min(2, len(words)):]
		case "--":
			words = words[1:]
		default:
			if strings.HasPrefix(text, "-") {
				words = words[1:]
			}
		}
	}
	for _, word := range words {
		text, _ := constant(word)
		switch {
		case text == "0", text == "-0", text == "-1", w.namesShell(word):
			w.traits.Exits = true
		case strings.HasPrefix(lead(word), "%"):
			w.mark(&w.traits.Jobs)
		}
	}
}

// namesShell reports whether a word has $$ in it, or, outside of subshells, $BASHPID.
func (w *walker) namesShell(word *syntax.Word) (found bool) {
	syntax.Walk(word, func(node syntax.Node) bool {
		if p, ok := node.(*syntax.ParamExp); ok {
			found = found || p.Param.Value == "$" || p.Param.Value == "BASHPID" && !w.sub
		}
		return !found
	})
	return found
}

// trap is for the words behind "trap".
func (w *walker) trap(words []*syntax.Word) {
	w.mark(&w.traits.Traps)
	w.changes()
	options, rest, certain := parseOptions(words, "")
	for _, option := range options {
		switch option.letter {
		case 'p':
			w.mark(&w.traits.ListsTraps)
			return
		case 'l':
			return
		}
	}
	if len(rest) == 0 {
		w.mark(&w.traits.ListsTraps)
		return
	}
	if !certain && splits(rest[0]) {
		w.mark(&w.traits.ListsTraps)
	}
	if len(rest) > 1 && !splits(rest[0]) {
		rest = rest[1:] // The first is the action.
	}
	for _, word := range rest {
		text, ok := constant(word)
		signal, err := strconv.Atoi(text)
		if !ok || strings.EqualFold(text, "EXIT") || strings.EqualFold(text, "SIGEXIT") || err == nil && signal == 0 {
			w.mark(&w.traits.ExitTrap)
		}
	}
}
