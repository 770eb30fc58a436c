package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// One command may read the files whose names another one prints: through xargs, in a substitution, or line by line through read. So the
// names that are printed are judged as if these files were read.

// takers are the commands that take names from their input, besides shells, whose scripts may have one of them.
var takers = []string{"xargs", "parallel", "read", "mapfile", "readarray"}

// takesNames reports whether a command, or one in it, may take names from its input: a substitution may, and so may a program that is not known. It
// is found once for all statements in one: for each by itself, that takes long where they are deep.
func (s *session) takesNames(stmt *syntax.Stmt) bool {
	if found, known := s.takes[stmt]; known {
		return found
	}
	var around []syntax.Node // the nodes that the walk is in
	takes := func() {
		for _, node := range slices.Backward(around) {
			if stmt, ok := node.(*syntax.Stmt); ok {
				if s.takes[stmt] {
					return // And so do those around it.
				}
				s.takes[stmt] = true
			}
		}
	}
	syntax.Walk(stmt, func(node syntax.Node) bool {
		switch node := node.(type) {
		case nil:
			around = around[:len(around)-1]
			return true
		case *syntax.Stmt:
			s.takes[node] = false
		case *syntax.CmdSubst:
			if !counts(node) {
				takes()
			}
		case *syntax.CallExpr:
			if callTakes(node) {
				takes()
			}
		}
		around = append(around, node)
		return true
	})
	return s.takes[stmt]
}

// callTakes reports whether a command takes names from its input, or may be one that does.
func callTakes(call *syntax.CallExpr) bool {
	w := &walker{s: &session{opts: &Options{}}}
	wraps := false
	for i, arg := range call.Args {
		v := w.value(arg)
		name := base(v.text)
		if shells[name] || slices.Contains(takers, name) || !v.known && (i == 0 || wraps) {
			return true
		}
		wraps = wraps || i == 0 && slices.ContainsFunc(wrapping, func(wr wrapper) bool {
			r := rule{programs: wr.programs}
			return r.program(name)
		})
	}
	return false
}

// handing walks words whose substitutions hand on what they print, or do not.
func (w *walker) handing(on bool, walk func()) {
	before := w.hands
	w.hands = on
	walk()
	w.hands = before
}

// substitution walks the commands of one.
func (w *walker) substitution(stmts []*syntax.Stmt) {
	before := w.handed
	w.handed = before || w.hands
	w.handing(false, func() { w.subshell(func() { w.statements(stmts) }) })
	w.handed = before
}

// printsNames are those of namesOnly that print names of files that were in their words.
var printsNames = []string{"echo", "printf", "basename", "dirname", "ls", "dir", "vdir", "stat", "readlink", "realpath", "wc"}

// printed are the words whose names are printed by a program of printsNames.
func (c *call) printed() []value {
	switch c.name {
	case "ls", "dir", "vdir":
		if _, operands, why := readers[c.name].options.parse(c.args); why != "" || len(operands) == 0 { // The names of all files there.
			return append(c.args[:len(c.args):len(c.args)], value{pattern: "*", many: true, from: c.from, to: c.to})
		}
	case "basename":
		options, operands, why := readers[c.name].options.parse(c.args)
		if why == "" && len(options) == 0 && len(operands) > 0 && !operands[0].many {
			return operands[:1] // The second is what it takes off the end.
		}
	}
	return c.args
}

// escapes are those by which printf and echo part what they print.
var escapes = strings.NewReplacer(`\n`, " ", `\0`, " ", `\t`, " ", `\x00`, " ")

// conversion is one of printf's, for which a word stands.
var conversion = lazyregexp.New(`%[-+ #0-9.*]*[a-zA-Z(]`)

// pieces splits each word as a command may that reads it: at blanks, and at the other characters that an option or IFS may name. It also
// takes off quotes, as xargs does.
func pieces(words []value) (list []value) {
	for _, v := range words {
		add := func(text string) {
			list = append(list, value{text: text, pattern: text, known: v.known, home: strings.HasPrefix(text, "~"), from: v.from, to: v.to})
		}
		text := escapes.Replace(v.pattern)
		if formed := conversion().ReplaceAllString(text, "["); formed != text {
			v.known, text = false, text+" "+formed // What stands for a conversion may be any text.
		}
		for _, text := range strings.Fields(text) {
			add(text)
			if bare := strings.Map(unquotes, text); bare != text {
				add(bare)
			}
			if gitURL().MatchString(text) {
				text = strings.TrimSuffix(text, ".git") // A part of it is no repository here.
			}
			if parts := strings.FieldsFunc(text, separates); len(parts) > 1 {
				for _, part := range parts {
					add(part)
				}
			}
		}
	}
	return list
}

// unquotes leaves out what xargs and read take off.
func unquotes(r rune) rune {
	if strings.ContainsRune(`"'\`, r) {
		return -1
	}
	return r
}

// separates reports whether a character is in few names of files.
func separates(r rune) bool { return strings.ContainsRune(`"'\,:;|=#%&+!<>(){}@^`, r) }

// names judges the text that a command reads, if names of files are taken from it.
func (w *walker) names(stmt *syntax.Stmt, text *syntax.Word) {
	if text != nil && (w.handed || w.s.takesNames(stmt)) {
		w.kept(pieces([]value{w.value(text)}))
	}
}

// kept judges words whose values are not known where they are used: the elements of an array, say.
func (w *walker) kept(words []value) {
	w.keepsAbove(words)
	for _, v := range words {
		if why, verdict := w.pathOf(v); verdict != Allow {
			w.addAt(KindExpansion, v.from, v.to, verdict, ruleOfPath(verdict), why)
		}
	}
}

// keepsAbove notes words that are above files with secrets: what reads files below a word that is not known may read those. It also notes names
// in the paths of such files.
func (w *walker) keepsAbove(words []value) {
	for _, v := range words {
		if gitURL().MatchString(v.pattern) {
			continue
		}
		if secretParts[v.pattern] && !slices.Contains(w.s.names, v.pattern) {
			w.s.names = append(w.s.names, v.pattern)
		}
		for _, dir := range append(slices.Concat(w.placed(v), w.belowKept(v)), v) {
			p := w.normal(dir)
			if strings.HasPrefix(p, "/proc/") && isSecretOfProcess(within(p, "environ")) {
				p = "/proc/self" // Each process has the same secrets: one directory stands for all.
			}
			if !slices.ContainsFunc(w.homes(p), w.isAbove) || slices.ContainsFunc(w.s.above, func(d directory) bool { return d.pattern == p }) {
				continue
			}
			if len(w.s.above) == mostNear {
				w.s.stop(v, "it has more directories with secrets than are looked at")
				return
			}
			w.s.above = append(w.s.above, directory{value: value{text: p, pattern: p, home: strings.HasPrefix(p, "~")}})
		}
	}
}

// gives judges what xargs gives names to, which read in a list of them, or behind a directory in the words, are not known.
func (c *call) gives(command []value, listed bool) {
	if len(command) == 0 || slices.Contains(namesOnly, base(command[0].text)) {
		return
	}
	if listed {
		c.add(Ask, ruleRead, "which files it reads is in another file, that is not read here")
	}
	for _, v := range command {
		slash := strings.LastIndexByte(v.text, '/')
		if v.known || slash < 0 {
			continue
		}
		v.pattern = v.text[:slash+1]
		if at := c.w.above([]value{v}); at != "" {
			c.add(Ask, ruleRead, readsBelow(at))
		}
	}
}

// source returns the name of the program that prints what a pipeline passes on, as far as it is a plain word.
func (s *session) source(stmt *syntax.Stmt) string {
	found, known := s.sources[stmt]
	if known {
		return found
	}
	if pipe, ok := stmt.Cmd.(*syntax.BinaryCmd); ok && len(stmt.Redirs) == 0 {
		if found = s.source(pipe.Y); found == anyCommand {
			found = s.source(pipe.X) // It is known where pipe was walked before, so that long pipelines do not take long.
		}
	} else {
		found = sourceOf(stmt)
	}
	s.sources[stmt] = found
	return found
}

const anyCommand = "a command"

func sourceOf(stmt *syntax.Stmt) string {
	found := anyCommand
	syntax.Walk(stmt, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			for _, arg := range call.Args {
				if name := base(strings.Trim(arg.Lit(), `\`)); name == "curl" || name == "wget" || name == "fetch" {
					found = name
				}
			}
		}
		return true
	})
	return found
}
