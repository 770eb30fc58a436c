package approval

import (
	"cmp"
	"slices"
	"strings"
)

// walks returns a directory with secrets, or with limpet's own files, below it, if the command reads all files below that; empty: it does not.
func (c *call) walks() string {
	if c.w.handed {
		switch c.name {
		case "find":
			return c.w.above(c.starts())
		case "fd", "fdfind", "tree", "du":
			return c.w.above(c.operands())
		case "ls", "dir", "vdir":
			if c.has("a", "A", "f", "R", "all", "almost-all", "recursive") {
				return c.w.above(c.operands())
			}
		}
	}
	switch c.name {
	case "grep", "egrep", "fgrep", "rg":
		options, operands, _ := readers[c.name].options.parse(c.args)
		has := func(names ...string) bool {
			return slices.ContainsFunc(options, func(o option) bool { return slices.Contains(names, o.name) })
		}
		recurses := c.name == "rg" && (c.w.handed || !has("files")) || has("r", "R", "recursive", "dereference-recursive") || slices.ContainsFunc(options, func(o option) bool {
			return (o.name == "d" && c.name != "rg" || o.name == "directories") && !o.arg.is("skip") && !o.arg.is("read")
		})
		if !recurses {
			return ""
		}
		if len(operands) > 0 && !operands[0].many && !has("files", "e", "regexp", "f", "file") {
			operands = operands[1:] // The first is what it looks for.
		}
		if c.name == "rg" && len(operands) == 0 && c.w.fed && !c.w.outside && !c.w.s.refed && !has("files") {
			return "" // It reads what the pipe gives it.
		}
		return c.w.above(operands)
	case "diff":
		if operands := c.operands(); len(operands) > 0 {
			return c.w.above(operands)
		}
	case "git":
		verb, in := c.gitVerb()
		switch operands := in.operands(); {
		case verb == "diff" && len(operands) > 0: // Outside of a repository it is a diff.
			return c.w.above(operands)
		case verb == "grep" && in.has("untracked"):
			return cmp.Or(c.w.above(nil), c.w.above(operands))
		}
	}
	return ""
}

func readsBelow(dir string) string {
	return "it reads what is below " + dir + ", with what is secret there, or gives its names to what reads it"
}

// above returns the first of directories that has secrets, or limpet's own files, below it; empty: none has. Without a directory it is where the command runs.
func (w *walker) above(dirs []value) string {
	if len(dirs) == 0 {
		dirs = []value{{text: ".", pattern: ".", known: true}}
	}
	for _, v := range dirs {
		if strings.HasPrefix(v.pattern, hidden) && w.s.walked == nil {
			w.s.walked = &v
		}
		for _, dir := range append(w.placed(v), v) {
			if p := w.normal(dir); slices.ContainsFunc(w.homes(p), w.isAbove) {
				return p
			}
		}
	}
	return ""
}
