package approval

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Names of files that one command prints, another one may read: by xargs, in a substitution, or as the lines of read. What is printed is
// then judged as what is read.

// takers are the commands that take names from their input, besides shells, whose scripts may have one of them.
var takers = []string{"xargs", "parallel", "read", "mapfile", "readarray"}

// takesNames reports whether a command, or one in it, may take names from its input.
func takesNames(stmt *syntax.Stmt) (found bool) {
	syntax.Walk(stmt, func(node syntax.Node) bool {
		if call, ok := node.(*syntax.CallExpr); ok {
			found = found || slices.ContainsFunc(call.Args, func(arg *syntax.Word) bool {
				name := base(arg.Lit())
				return shells[name] || slices.Contains(takers, name)
			})
		}
		return !found
	})
	return found
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
var printsNames = []string{"echo", "printf", "basename", "dirname", "ls", "stat", "readlink", "realpath", "wc"}

// escapes are those by which printf and echo part what they print.
var escapes = strings.NewReplacer(`\n`, " ", `\0`, " ", `\t`, " ", `\x00`, " ")

// pieces are the words that a word becomes where what is printed is read by its blanks.
func pieces(words []value) (list []value) {
	for _, v := range words {
		for i, text := range strings.Fields(escapes.Replace(v.pattern)) {
			list = append(list, value{text: text, pattern: text, known: v.known, home: v.home && i == 0, from: v.from, to: v.to})
		}
	}
	return list
}

// names judges the text that a command reads, if names of files are taken from it.
func (w *walker) names(stmt *syntax.Stmt, text *syntax.Word) {
	if text != nil && (w.handed || takesNames(stmt)) {
		w.kept(pieces([]value{w.value(text)}))
	}
}

// kept judges words whose values are not known where they are used: the elements of an array, say.
func (w *walker) kept(words []value) {
	for _, v := range words {
		if why, verdict := w.path(v, false); verdict != Allow {
			w.addAt(KindExpansion, v.from, v.to, verdict, ruleOfPath(verdict), why)
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
